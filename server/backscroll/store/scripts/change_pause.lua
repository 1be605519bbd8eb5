-- What a step does to a pause. Packed: 1 the revision it was decided on, -1 for any, 2 fields to
-- set, 3 fields to set behind the time, 4 fields to remove first; '' for no change.
local function pause_differs(key, packed)
  if packed == '' then return false end
  local revision = cmsgpack.unpack(packed)[1]
  return revision >= 0 and revision ~= tonumber(redis.call('HGET', key, 'rev') or 0)
end

local function change_pause(key, packed, stamp)
  if packed == '' then return end
  local c = cmsgpack.unpack(packed)
  for _, name in ipairs(c[4]) do redis.call('HDEL', key, name) end
  for name, value in pairs(c[2]) do redis.call('HSET', key, name, value) end
  for name, value in pairs(c[3]) do redis.call('HSET', key, name, stamp .. ' ' .. value) end
  redis.call('HINCRBY', key, 'rev', 1)
end
