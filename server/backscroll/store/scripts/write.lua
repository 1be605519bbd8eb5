-- Number, stamp and store the entries in ARGV from `from` on (kind, stamp, head, body each), change
-- meta (packed: fields to set, to set once, to add to), and ring the bell with what was written.
local LARGEST_BELL = 1048576
local function write(head, batch, epoch, changes, from)
  local first, size, parts, counts = head.seq + 1, 0, {}, {}
  for at = from, #ARGV, 4 do
    local kind, stamp, body = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 3]
    head.seq = head.seq + 1
    if stamp > 0 then body = body:sub(1, stamp - 1) .. head.stamp .. body:sub(stamp + 13) end
    local item = {head.seq .. '-0', 't', head.stamp, 'h', ARGV[at + 2], 'b', body}
    if at == from and batch ~= '' then item[8], item[9] = 'i', (#ARGV - from + 1) / 4 .. ' ' .. batch end
    redis.call('XADD', KEYS[1], unpack(item))
    if kind == 'call' then redis.call('RPUSH', KEYS[3], head.seq) end
    counts['n_' .. kind] = (counts['n_' .. kind] or 0) + 1
    parts[#parts + 1], parts[#parts + 2], size = ARGV[at + 2], body, size + #body
  end
  change_meta(head, epoch, cmsgpack.unpack(changes), counts)
  if size > LARGEST_BELL then parts = {} end
  redis.call('PUBLISH', KEYS[4], cmsgpack.pack({first, head.seq, head.time, parts, ''}))
  return {'ok', first, head.seq, head.time}
end
