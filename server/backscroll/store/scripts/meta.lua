-- Bring meta to the new head: changes are fields to set, to set once, and to add to.
local function change_meta(head, epoch, changes, counts)
  if redis.call('HSETNX', KEYS[2], 'epoch', epoch) == 1 then
    redis.call('HSET', KEYS[2], 'created', head.stamp)
  end
  local set = {'seq', head.seq, 'time', head.stamp}
  for name, value in pairs(changes[1]) do set[#set + 1], set[#set + 2] = name, value end
  redis.call('HSET', KEYS[2], unpack(set))
  for name, value in pairs(changes[2]) do redis.call('HSETNX', KEYS[2], name, value) end
  for name, by in pairs(changes[3]) do redis.call('HINCRBY', KEYS[2], name, by) end
  for name, by in pairs(counts) do redis.call('HINCRBY', KEYS[2], name, by) end
end
