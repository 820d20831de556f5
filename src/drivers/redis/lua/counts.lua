#!lua flags=no-writes
-- arguments  prefix, incarnation, number of partitions
-- returns    {storeTimeMs, messages in inboxes, leased tasks, dead letters, then for each queue: name, queued tasks, leased
--            tasks, when the oldest of the queued ones came, or 0}

local LOOK = 100
local inbox, leased = 0, 0
for partition = 0, tonumber(argument()) - 1 do
  inbox = inbox + call('XLEN', key('inbox', partition))
end
-- The first that is still there. Where many were withdrawn it may be none of those that are looked at, and nobody knows.
local function oldest(line)
  for _, token in ipairs(call('LRANGE', key('line', line), 0, LOOK - 1)) do
    local packed = call('HGET', key('tasks'), token)
    if packed then return (names_of(packed) or {})[5] or 0 end
  end
  return 0
end

local answer = { wall_ms(), 0, 0, call('HLEN', key('letters')) }
local all = call('HGETALL', key('queues'))
for i = 1, #all, 2 do
  local queued, taken_of, since = 0, 0, 0
  for priority in string.gmatch(all[i + 1], '%S+') do
    local line = priority .. ':' .. all[i]
    local taken = call('ZCARD', key('leases', line))
    leased, taken_of = leased + taken, taken_of + taken
    local gone = tonumber(call('HGET', key('gone'), line) or 0)
    queued = queued + math.max(0, call('LLEN', key('line', line)) - gone)
    local first = oldest(line)
    if first > 0 and (since == 0 or first < since) then since = first end
  end
  answer[#answer + 1] = all[i]
  answer[#answer + 1] = queued
  answer[#answer + 1] = taken_of
  answer[#answer + 1] = since
end
answer[2], answer[3] = inbox, leased
return answer
