#!lua flags=allow-oom
-- Removes tasks and posts their results in one step. Of a task that is gone only a completion is posted.
-- arguments  prefix, incarnation, then for each: ref, token, partition, '1' for a completion, text
-- returns    for each 'settled', 'posted' or 'stale'

local outcomes = {}
while at < #ARGV do
  local ref, token, partition, is_completion, text = argument(), argument(), argument(), argument(), argument()
  if not can_post(partition) then return redis.error_reply('FOREIGN the inbox of partition ' .. partition) end
  local outcome = is_completion == '1' and 'posted' or 'stale'
  local task = find_task(token, ref)
  if task and remove_task(token, task.line, task.id) then outcome = 'settled' end
  if outcome ~= 'stale' then post(partition, text) end
  outcomes[#outcomes + 1] = outcome
end
return outcomes
