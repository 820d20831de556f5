#!lua flags=allow-oom
-- Removes tasks whose lease has still run out and posts the message about each; a revoked one goes without a word.
-- arguments  prefix, incarnation, then for each: ref, token, partition, text
-- returns    how many it removed

local _, offset = lease_ms()
local count = 0
while at < #ARGV do
  local ref, token, partition, text = argument(), argument(), argument(), argument()
  local task = find_task(token, ref)
  -- It may have been settled, or its lease made longer, since it was found.
  local pending = task
    and redis.call('XPENDING', key('line', task.line), WORKERS, 'IDLE', AGE - offset, task.id, task.id, 1)
  if pending and #pending > 0 and can_post(partition) then
    remove_task(token, task.line, task.id)
    if not task.is_revoked then post(partition, text) end
    count = count + 1
  end
end
return count
