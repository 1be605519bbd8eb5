-- Make a lease longer and say whether its run shall stop. KEYS: 1 meta.
-- ARGV: 1 fence, 2 length in ms.
local m = redis.call('HMGET', KEYS[1], 'fence', 'run', 'stop')
if m[1] ~= ARGV[1] or not m[2] then return {'lost', tonumber(m[1] or 0)} end
local t = redis.call('TIME')
local lease = t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[2]
redis.call('HSET', KEYS[1], 'lease', string.format('%.0f', lease))
return {'ok', lease, m[2] == m[3] and 1 or 0}
