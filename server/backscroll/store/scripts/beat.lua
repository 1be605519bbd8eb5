-- Note that a worker lives, and drop those that did not for long. KEYS: 1 workers.
-- ARGV: 1 worker, 2 what it says of itself, 3 age in ms beyond which a worker is gone.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now) .. ' ' .. ARGV[2])
local workers = redis.call('HGETALL', KEYS[1])
for at = 1, #workers, 2 do
  local seen = tonumber(workers[at + 1]:match('^%d+'))
  if seen < now - ARGV[3] then redis.call('HDEL', KEYS[1], workers[at]) end
end
return now
