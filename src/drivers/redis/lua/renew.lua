#!lua flags=allow-oom
-- Makes leases of partitions longer, and lets the clock for leases see what time it is.
-- arguments  prefix, incarnation, leaseMs, then for each partition: partition, incarnation, epoch, nonce
-- returns    {storeTimeMs, then for each partition its seq, or '' if it is lost}

local until_ms = lease_ms() + tonumber(argument())
local answer = { wall_ms() }
while at < #ARGV do
  local partition, incarnation, epoch, nonce = argument(), argument(), argument(), argument()
  if is_holder(partition, incarnation, epoch, nonce) then
    call('HSET', key('partition', partition), 'until', until_ms)
    answer[#answer + 1] = call('HGET', key('partition', partition), 'seq') or '0'
  else
    answer[#answer + 1] = ''
  end
end
return answer
