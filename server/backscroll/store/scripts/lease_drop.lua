-- Give a claim back, if it is still ours. KEYS: 1 lease. ARGV: 1 token.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
