-- Decide about items of a pause, with the entries that tell of it. KEYS: 5 pause.
-- ARGV: 1 batch, 2 '1' when sent again, 3 epoch, 4 changes of meta, 5 change of the pause,
-- 6 on: entries.
local head = read_head()
local answer = ARGV[2] == '1' and written_before(ARGV[1])
if answer then return answer end
if pause_differs(KEYS[5], ARGV[5]) then return {'changed', head.seq} end
change_pause(KEYS[5], ARGV[5], head.stamp)
return write(head, ARGV[1], ARGV[3], ARGV[4], 6)
