-- Reserve a run id for a thread, until the run has started or the claim has run out.
-- KEYS: 1 index of the run. ARGV: 1 thread, 2 length of the claim in ms. Answers who holds it.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return holder end
if not holder or redis.call('PTTL', KEYS[1]) >= 0 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return ARGV[1]
