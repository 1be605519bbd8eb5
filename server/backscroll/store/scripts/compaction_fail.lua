-- Count a failure of the summariser and note when. KEYS: 1 compaction, 2 meta.
-- ARGV: 1 fence, 0 without a run. Answers the new count.
local fence = tonumber(redis.call('HGET', KEYS[2], 'fence') or 0)
if ARGV[1] ~= '0' and tonumber(ARGV[1]) ~= fence then return {'lost', fence} end
local t = redis.call('TIME')
redis.call('HINCRBY', KEYS[1], 'gen', 1)
redis.call('HSET', KEYS[1], 'opened', string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000)))
return {'ok', redis.call('HINCRBY', KEYS[1], 'failures', 1)}
