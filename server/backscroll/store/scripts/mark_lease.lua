-- Note when a thread is to be looked at again, never earlier than noted before. KEYS: 1 leases.
-- ARGV: 1 thread, 2 time from now in ms.
local t = redis.call('TIME')
local at = t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[2]
redis.call('ZADD', KEYS[1], 'GT', string.format('%.0f', at), ARGV[1])
return at
