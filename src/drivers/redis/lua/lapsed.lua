#!lua flags=allow-oom
-- Finds tasks whose lease ran out. Takes nothing: the message about each is written by the driver, then posted by lapse.
-- arguments  prefix, limit
-- returns    for each task: token, stored text

local lapsed = redis.call('ZRANGE', key('leases'), '-inf', lease_ms(), 'BYSCORE', 'LIMIT', 0, argument())
local answer = {}
for i = 1, #lapsed do
  answer[2 * i - 1] = lapsed[i]
  answer[2 * i] = redis.call('HGET', key('tasks'), lapsed[i])
end
return answer
