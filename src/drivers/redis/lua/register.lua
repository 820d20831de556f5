#!lua flags=allow-oom
-- Says that a process is alive for a while, and forgets those that are not.
-- arguments  prefix, incarnation, ttlMs [, process, text]
-- returns    the texts of those that are alive

local now = lease_ms()
local ttl, process, text = tonumber(argument()), argument(), argument()
if process then
  call('HSET', key('registrations'), process, text)
  call('ZADD', key('registrations', 'until'), now + ttl, process)
end
local dead = call('ZRANGE', key('registrations', 'until'), '-inf', now, 'BYSCORE')
for i = 1, #dead do
  call('HDEL', key('registrations'), dead[i])
  call('ZREM', key('registrations', 'until'), dead[i])
end
return call('HVALS', key('registrations'))
