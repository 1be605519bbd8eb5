-- Apply what was decided on a history. KEYS: 5 messages, 6 ids. Packed: 1 ids to forget,
-- 2 added {offset of its entry in the batch, id, message}, 3 edited {position, message},
-- 4 superseded positions, '' for no change.
local function change_history(head, packed)
  local c, count = cmsgpack.unpack(packed), redis.call('LLEN', KEYS[5])
  for _, id in ipairs(c[1]) do redis.call('HDEL', KEYS[6], id) end
  for i, m in ipairs(c[2]) do
    redis.call('RPUSH', KEYS[5], cmsgpack.pack({head.seq + m[1], head.time, m[3]}))
    redis.call('HSET', KEYS[6], m[2], count + i)
  end
  for _, m in ipairs(c[3]) do
    local stored = cmsgpack.unpack(redis.call('LINDEX', KEYS[5], m[1] - 1))
    redis.call('LSET', KEYS[5], m[1] - 1, cmsgpack.pack({stored[1], stored[2], m[2]}))
  end
  if c[4] ~= '' then redis.call('HSET', KEYS[2], 'superseded', c[4]) end
  if c[4] ~= '' or #c[3] > 0 then redis.call('HINCRBY', KEYS[2], 'edits', 1) end
  redis.call('HSET', KEYS[2], 'messages', count + #c[2])
  redis.call('HINCRBY', KEYS[2], 'revision', 1)
end
