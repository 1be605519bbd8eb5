-- Write a compaction entry, over one generation only if that is given.
-- KEYS: 1 compaction, 2 meta. ARGV: 1 fence, 0 without a run, 2 generation or '', 3 entry,
-- 4 failures, 5 time of the last failure or ''. Answers the new generation, 0 if another came first.
local fence = tonumber(redis.call('HGET', KEYS[2], 'fence') or 0)
if ARGV[1] ~= '0' and tonumber(ARGV[1]) ~= fence then return {'lost', fence} end
local generation = redis.call('HGET', KEYS[1], 'gen') or '0'
if ARGV[2] ~= '' and ARGV[2] ~= generation then return {'ok', 0} end
redis.call('HSET', KEYS[1], 'gen', generation + 1, 'entry', ARGV[3], 'failures', ARGV[4])
if ARGV[5] == '' then
  redis.call('HDEL', KEYS[1], 'opened')
else
  redis.call('HSET', KEYS[1], 'opened', ARGV[5])
end
return {'ok', generation + 1}
