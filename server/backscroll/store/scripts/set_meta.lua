-- Set fields of a thread's meta, if there is such a thread. KEYS: 1 meta. ARGV: name, value, …
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
