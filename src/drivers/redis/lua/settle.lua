#!lua flags=allow-oom
-- Removes tasks and posts their results in one step. Of a task that is gone only a completion is posted.
-- arguments  prefix, incarnation, then for each: place, token, partition, '1' for a completion, text
-- returns    for each 'settled', 'posted' or 'stale'

local results, tokens, places = {}, {}, {}
while at < #ARGV do
  local i = #results + 1
  places[i], tokens[i] = argument(), argument()
  results[i] = { partition = argument(), is_completion = argument() == '1', text = argument() }
  if not can_post(results[i].partition) then
    return redis.error_reply('FOREIGN the inbox of partition ' .. results[i].partition)
  end
end

local is_out = find_out(tokens, places)
for i in pairs(is_out) do
  local line = line_of(places[i])
  if not may_be_stream(key('line', line)) then return redis.error_reply('FOREIGN the line ' .. line) end
end
remove_tasks(tokens, places, is_out)
local outcomes = {}
for i, result in ipairs(results) do
  local is_posted = is_out[i] or result.is_completion
  if is_posted then post(result.partition, result.text) end
  outcomes[i] = is_out[i] and 'settled' or is_posted and 'posted' or 'stale'
end
return outcomes
