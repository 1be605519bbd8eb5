-- Put in front of every script that writes a log. KEYS: 1 log, 2 meta, 3 calls, 4 bell.
-- What meta knows of the log, and the time of this step: never before that of the last entry.
local function read_head()
  local m = redis.call('HMGET', KEYS[2], 'seq', 'time', 'fence', 'run', 'lease', 'revision')
  local t = redis.call('TIME')
  local time = math.max(t[1] * 1000 + math.floor(t[2] / 1000), tonumber(m[2] or 0))
  return {
    seq = tonumber(m[1] or 0), time = time, stamp = string.format('%.0f', time),
    fence = tonumber(m[3] or 0), run = m[4] or '', lease = tonumber(m[5] or 0),
    revision = tonumber(m[6] or 0),
  }
end
