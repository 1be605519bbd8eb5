-- Start a run on an idle thread: lease, fence, entries, messages and pause in one step.
-- KEYS: 5 messages, 6 ids, 7 runs, 8 run, 9 state, 10 pause. ARGV: 1 batch, 2 run, 3 worker,
-- 4 lease in ms, 5 revision of the history, 6 record, 7 what a takeover needs, 8 state or '', 9 epoch,
-- 10 to 12 changes of meta, history and pause, 13 on: entries.
local head, run = read_head(), ARGV[2]
local known = redis.call('HMGET', KEYS[7], 's:' .. run, 'e:' .. run)
if known[1] then return {'known', known[1], known[2]} end
if head.run ~= '' then return {'busy', head.run, head.lease <= head.time and 1 or 0} end
local is_stale = head.revision ~= tonumber(ARGV[5]) or pause_differs(KEYS[10], ARGV[12])
if is_stale then return {'changed', head.revision} end
local fence, first = head.fence + 1, head.seq + 1
change_history(head, ARGV[11])
change_pause(KEYS[10], ARGV[12], head.stamp)
redis.call('HSET', KEYS[2], 'fence', fence, 'run', run, 'worker', ARGV[3],
  'lease', string.format('%.0f', head.time + ARGV[4]))
if ARGV[7] ~= '' then redis.call('SET', KEYS[8], ARGV[7]) end
if ARGV[8] ~= '' then redis.call('SET', KEYS[9], ARGV[8]) end
local answer = write(head, ARGV[1], ARGV[9], ARGV[10], 13)
local record = {fence, first, answer[3], head.stamp, ARGV[1], ARGV[6]}
redis.call('HSET', KEYS[7], 's:' .. run, table.concat(record, ' '))
return {'started', fence, first, answer[3], head.time}
