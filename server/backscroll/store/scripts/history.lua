-- Change a history and log it, if it still is what the change was decided on.
-- KEYS: 5 messages, 6 ids. ARGV: 1 fence, 2 revision, 3 epoch of a new log, 4 changes of meta,
-- 5 changes of the history, 6 on: entries. Fence 0 writes without a run.
-- Sent again it finds another revision, and whoever decides anew finds nothing left to do.
local head, fence = read_head(), tonumber(ARGV[1])
if fence > 0 and fence ~= head.fence then return {'lost', head.fence} end
if head.revision ~= tonumber(ARGV[2]) then return {'changed', head.revision} end
change_history(head, ARGV[5])
return write(head, '', ARGV[3], ARGV[4], 6)
