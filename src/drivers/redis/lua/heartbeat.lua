#!lua flags=allow-oom
-- Makes the leases longer that are named by both name and token, and posts a message for those that bring one.
-- arguments  prefix, leaseMs, then for each: ref, token, partition and text of the message or '' and ''
-- returns    for each 'held', 'cancelled' or 'lost'

local until_ms = lease_ms() + tonumber(argument())
local outcomes = {}
while at < #ARGV do
  local ref, token, partition, text = argument(), argument(), argument(), argument()
  local outcome = 'lost'
  if is_leased(token, ref) then
    redis.call('ZADD', key('leases'), until_ms, token)
    if text ~= '' then post(partition, text) end
    outcome = redis.call('SISMEMBER', key('revoked'), token) == 1 and 'cancelled' or 'held'
  end
  outcomes[#outcomes + 1] = outcome
end
return outcomes
