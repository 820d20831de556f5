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
    redis.call('XACK', key('line', task.line), WORKERS, task.id)
    redis.call('XDEL', key('line', task.line), task.id)
    redis.call('HDEL', key('tasks'), token)
    if not task.is_revoked then post(partition, text) end
    count = count + 1
  end
end
return count
