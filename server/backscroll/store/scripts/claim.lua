-- Take over a run whose lease has expired: the next fence shuts its worker out.
-- KEYS: 1 log, 2 meta. ARGV: 1 worker, 2 length of the new lease in ms.
local head = read_head()
if head.run == '' then return {'idle'} end
if head.lease > head.time then return {'held', head.lease - head.time} end
redis.call('HSET', KEYS[2], 'fence', head.fence + 1, 'worker', ARGV[1],
  'lease', string.format('%.0f', head.time + ARGV[2]))
return {'claimed', head.run, head.fence + 1}
