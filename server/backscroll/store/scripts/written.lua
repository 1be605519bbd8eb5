-- The answer a batch had if it is in the log already: its first entry carries size and name.
local function written_before(batch)
  for _, item in ipairs(redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1000)) do
    local fields = item[2]
    local size, name = (fields[8] or ''):match('^(%d+) (.*)$')
    if name == batch then
      local first = tonumber(item[1]:match('^%d+'))
      return {'ok', first, first + tonumber(size) - 1, tonumber(fields[2])}
    end
  end
end
