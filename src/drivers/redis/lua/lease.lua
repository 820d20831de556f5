#!lua flags=allow-oom
-- Leases tasks, queues in the order given, so many in all.
-- arguments  prefix, max, leaseMs, then the queues
-- returns    for each task: token, stored text

local left, until_ms = tonumber(argument()), lease_ms() + tonumber(argument())
local answer = {}
while at < #ARGV and left > 0 do
  local queue = argument()
  local taken = redis.call('ZPOPMIN', key('queue', queue), left)
  for i = 1, #taken, 2 do
    redis.call('ZADD', key('leases'), until_ms, taken[i])
    answer[#answer + 1] = taken[i]
    answer[#answer + 1] = redis.call('HGET', key('tasks'), taken[i])
    left = left - 1
  end
  -- A bell for each task that is left: nobody is woken for one that is gone.
  local size = redis.call('ZCARD', key('queue', queue))
  if size == 0 then
    redis.call('DEL', key('bell', queue))
  elseif #taken > 0 then
    redis.call('LTRIM', key('bell', queue), 0, size - 1)
  end
end
return answer
