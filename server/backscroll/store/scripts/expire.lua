-- Let the keys of a thread live for so long from now on. ARGV: 1 length in ms.
for _, name in ipairs(KEYS) do redis.call('PEXPIRE', name, ARGV[1]) end
return #KEYS
