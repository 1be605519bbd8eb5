-- Append a batch to a log, with its blobs and the state it made true. KEYS: 5 blobs, 6 state.
-- ARGV: 1 fence, 2 batch, 3 '1' when sent again, 4 epoch of a new log, 5 changes of meta,
-- 6 blobs, 7 state or '', 8 on: entries. Fence 0 writes without a run.
local head, fence = read_head(), tonumber(ARGV[1])
local answer = ARGV[3] == '1' and written_before(ARGV[2])
if answer then return answer end
if fence > 0 and fence ~= head.fence then return {'lost', head.fence} end
for sha, bytes in pairs(cmsgpack.unpack(ARGV[6])) do
  redis.call('HSETNX', KEYS[5], sha, bytes)
end
if ARGV[7] ~= '' then redis.call('SET', KEYS[6], ARGV[7]) end
return write(head, ARGV[2], ARGV[4], ARGV[5], 8)
