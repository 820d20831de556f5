#!lua flags=no-writes
-- A part of a sorted set by time, in one look: whoever comes or goes meanwhile moves nothing.
-- arguments  prefix, incarnation, key, 'earliest' or 'latest' for where to begin, the time behind which to begin or '', limit
-- returns    for each: name, time. All that have the very time at which to begin, then so many beyond it.

local set, from, start, limit = key(argument()), argument(), argument(), argument()
local is_earliest = from == 'earliest'
local function range(first, last, ...)
  local direction = is_earliest and {} or { 'REV' }
  local command = { 'ZRANGE', set, first, last, 'BYSCORE', 'WITHSCORES' }
  for _, word in ipairs(direction) do command[#command + 1] = word end
  for _, word in ipairs({ ... }) do command[#command + 1] = word end
  return call(unpack(command))
end
local answer = start == '' and {} or range(start, start)
local first = start == '' and (is_earliest and '-inf' or '+inf') or '(' .. start
local beyond = range(first, is_earliest and '+inf' or '-inf', 'LIMIT', 0, limit)
for i = 1, #beyond do answer[#answer + 1] = beyond[i] end
return answer
