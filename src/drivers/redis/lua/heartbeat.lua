#!lua flags=allow-oom
-- Makes leases longer, and posts a message for those that bring one.
-- arguments  prefix, incarnation, leaseMs, then for each: line, token, partition and text of the message or '' and ''
-- returns    for each 'held', 'cancelled' or 'lost'

local until_ms = string.format('%.0f', lease_ms() + tonumber(argument()))
local outcomes = {}
while at < #ARGV do
  local leases, token, partition, text = key('leases', argument()), argument(), argument(), argument()
  local outcome = 'lost'
  if call('ZSCORE', leases, token) then
    call('ZADD', leases, until_ms, token)
    if text ~= '' then post(partition, text) end
    outcome = call('SISMEMBER', key('revoked'), token) == 1 and 'cancelled' or 'held'
  end
  outcomes[#outcomes + 1] = outcome
end
return outcomes
