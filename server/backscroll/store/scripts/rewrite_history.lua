-- Put a shorter history in place of one, if it still is what that was decided on.
-- KEYS: 5 messages, 6 ids, 7 blobs. ARGV: 1 fence, 2 revision, 3 epoch of a new log, 4 changes of
-- meta, 5 packed: 1 ids to forget, 2 positions to empty, 3 {position, id, offset of its entry in
-- the batch, message}, 6 name of the archive or '', 7 archive, 8 on: entries.
-- Sent again it finds another revision, and whoever decides anew finds nothing left to do.
local head, fence = read_head(), tonumber(ARGV[1])
if fence > 0 and fence ~= head.fence then return {'lost', head.fence} end
if head.revision ~= tonumber(ARGV[2]) then return {'changed', head.revision} end
local c = cmsgpack.unpack(ARGV[5])
for _, id in ipairs(c[1]) do redis.call('HDEL', KEYS[6], id) end
for _, position in ipairs(c[2]) do redis.call('LSET', KEYS[5], position - 1, '') end
for _, m in ipairs(c[3]) do
  redis.call('LSET', KEYS[5], m[1] - 1, cmsgpack.pack({head.seq + m[3], head.time, m[4]}))
  redis.call('HSET', KEYS[6], m[2], m[1])
end
if ARGV[6] ~= '' then redis.call('HSETNX', KEYS[7], ARGV[6], ARGV[7]) end
redis.call('HINCRBY', KEYS[2], 'edits', 1)
redis.call('HINCRBY', KEYS[2], 'revision', 1)
return write(head, '', ARGV[3], ARGV[4], 8)
