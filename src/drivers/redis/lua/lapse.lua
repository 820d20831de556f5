#!lua flags=allow-oom
-- Removes tasks whose lease has still run out and posts the message about each; a revoked one goes without a word.
-- arguments  prefix, incarnation, then for each: line, token, partition, text
-- returns    how many it removed

local now = lease_ms()
local count = 0
while at < #ARGV do
  local leases, token, partition, text = key('leases', argument()), argument(), argument(), argument()
  -- It may have been settled, or its lease made longer, since it was found.
  local until_ms = call('ZSCORE', leases, token)
  if until_ms and tonumber(until_ms) <= now and may_be('stream', key('inbox', partition)) then
    call('ZREM', leases, token)
    call('HDEL', key('tasks'), token)
    if call('SREM', key('revoked'), token) == 0 then post(partition, text) end
    count = count + 1
  end
end
return count
