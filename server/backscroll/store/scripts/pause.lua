-- Change a pause that no log tells of. KEYS: 1 pause. ARGV: 1 id that must be open, or '',
-- 2 token of this change, by which it knows itself when sent again, 3 change of the pause.
if redis.call('HGET', KEYS[1], 'token') == ARGV[2] then return 1 end
if ARGV[1] ~= '' and redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return 0 end
local t = redis.call('TIME')
change_pause(KEYS[1], ARGV[3], string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000)))
redis.call('HSET', KEYS[1], 'token', ARGV[2])
return 1
