-- Delete an idle thread and tell its watchers. KEYS: 1 log, 2 meta, and every other key of it.
-- ARGV: 1 bell. Answers the run that is active instead, if one is.
local head = read_head()
if head.run ~= '' and head.lease > head.time then return head.run end
redis.call('UNLINK', unpack(KEYS))
redis.call('PUBLISH', ARGV[1], cmsgpack.pack({1, 0, head.time, {}, ''}))
return false
