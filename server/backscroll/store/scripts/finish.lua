-- End a run: its last entries, its record, its pause, and the lease given back.
-- KEYS: 5 runs, 6 run, 7 pause, 8 activities. ARGV: 1 fence, 2 batch, 3 '1' when sent again,
-- 4 epoch, 5 changes of meta, 6 run, 7 record of the end, 8 change of the pause or '',
-- 9 packed activities, 10 how many are kept, 11 on: entries.
local head, run = read_head(), ARGV[6]
local answer = ARGV[3] == '1' and written_before(ARGV[2])
if answer then return answer end
if tonumber(ARGV[1]) ~= head.fence or run ~= head.run then return {'lost', head.fence} end
redis.call('HDEL', KEYS[2], 'run', 'lease', 'stop')
redis.call('DEL', KEYS[6])
change_pause(KEYS[7], ARGV[8], head.stamp)
for _, one in ipairs(cmsgpack.unpack(ARGV[9])) do redis.call('RPUSH', KEYS[8], one) end
redis.call('LTRIM', KEYS[8], -ARGV[10], -1)
answer = write(head, ARGV[2], ARGV[4], ARGV[5], 11)
redis.call('HSET', KEYS[5], 'e:' .. run, answer[3] .. ' ' .. head.stamp .. ' ' .. ARGV[7])
return answer
