#!lua flags=allow-oom
-- Removes tasks and posts their results in one step. Of a task that is gone only a completion is posted.
-- arguments  prefix, incarnation, then for each: ref, token, partition, '1' for a completion, text
-- returns    for each 'settled', 'posted' or 'stale'

local results, tokens = {}, {}
while at < #ARGV do
  local result = { place = string.match(argument(), '^%S+ (.*)$'), token = argument(), partition = argument() }
  result.is_completion, result.text = argument() == '1', argument()
  if not can_post(result.partition) then
    return redis.error_reply('FOREIGN the inbox of partition ' .. result.partition)
  end
  results[#results + 1] = result
  tokens[#tokens + 1] = result.token
end

-- What is out under the name that was given with it has been leased, and nobody but a settlement or a lapse removes that.
local settled, ids_of, out = {}, {}, {}
for i, place in ipairs(places_of(tokens)) do out[tokens[i]] = place and string.gsub(place, '^!', '') end
for _, result in ipairs(results) do
  if out[result.token] and out[result.token] == result.place then
    local id, line = string.match(result.place, '^(%S+) (.*)$')
    if not may_be_stream(key('line', line)) then return redis.error_reply('FOREIGN the line ' .. line) end
    ids_of[line] = ids_of[line] or {}
    table.insert(ids_of[line], id)
    settled[#settled + 1] = result.token
    result.is_settled, out[result.token] = true, false
  end
end

for line, ids in pairs(ids_of) do
  call_in_parts({ 'XACK', key('line', line), WORKERS }, ids, {})
  call_in_parts({ 'XDEL', key('line', line) }, ids, {})
end
call_in_parts({ 'HDEL', key('tasks') }, settled, {})
local outcomes = {}
for i, result in ipairs(results) do
  local is_posted = result.is_settled or result.is_completion
  if is_posted then post(result.partition, result.text) end
  outcomes[i] = result.is_settled and 'settled' or is_posted and 'posted' or 'stale'
end
return outcomes
