-- Forget a history. KEYS: 1 meta, 2 messages, 3 ids. ARGV: 1 fence, 0 without a run.
local fence = tonumber(redis.call('HGET', KEYS[1], 'fence') or 0)
if ARGV[1] ~= '0' and tonumber(ARGV[1]) ~= fence then return {'lost', fence} end
if redis.call('UNLINK', KEYS[2], KEYS[3]) == 0 then return {'ok'} end
redis.call('HDEL', KEYS[1], 'superseded', 'messages', 'rewritten')
redis.call('HINCRBY', KEYS[1], 'edits', 1)
redis.call('HINCRBY', KEYS[1], 'revision', 1)
return {'ok'}
