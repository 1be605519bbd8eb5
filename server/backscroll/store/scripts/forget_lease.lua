-- Take a thread out of the leases, unless a newer one was noted. KEYS: 1 leases.
-- ARGV: 1 thread, 2 the time that was found.
local found = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not found or tonumber(found) > tonumber(ARGV[2]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[1])
