-- Ask the active run to stop and ring for its worker. KEYS: 1 log, 2 meta, 3 calls, 4 bell.
-- ARGV: 1 run. Answers 0 when that run is not active.
local head = read_head()
if head.run == '' or head.run ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], 'stop', ARGV[1])
redis.call('PUBLISH', KEYS[4], cmsgpack.pack({head.seq + 1, head.seq, head.time, {}, ARGV[1]}))
return 1
