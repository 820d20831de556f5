#!lua flags=allow-oom
-- Makes the leases longer that are named by both name and token, and posts a message for those that bring one.
-- arguments  prefix, incarnation, leaseMs, then for each: ref, token, partition and text of the message or '' and ''
-- returns    for each 'held', 'cancelled' or 'lost'

local until_ms = lease_ms() + tonumber(argument())
local outcomes = {}
while at < #ARGV do
  local ref, token, partition, text = argument(), argument(), argument(), argument()
  local task = find_task(token, ref)
  local outcome = 'lost'
  if task and claim(task.line, task.consumer, { task.id }, until_ms) == 1 then
    if text ~= '' then post(partition, text) end
    outcome = task.is_revoked and 'cancelled' or 'held'
  end
  outcomes[#outcomes + 1] = outcome
end
return outcomes
