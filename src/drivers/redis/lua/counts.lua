#!lua flags=no-writes
-- arguments  prefix, incarnation, number of partitions
-- returns    {storeTimeMs, messages in inboxes, leased tasks, dead letters, then for each queue: name, queued tasks, leased
--            tasks, when the oldest of the queued ones came, or 0}

local inbox, leased = 0, 0
for partition = 0, tonumber(argument()) - 1 do
  inbox = inbox + redis.call('XLEN', key('inbox', partition))
end
-- The first that nobody has been given: its id begins with the time at which it came.
local function oldest(line)
  local groups = redis.pcall('XINFO', 'GROUPS', line)
  local last = '0'
  for _, group in ipairs(groups.err and {} or groups) do
    for i = 1, #group, 2 do
      if group[i] == 'last-delivered-id' then last = group[i + 1] end
    end
  end
  local first = redis.call('XRANGE', line, '(' .. last, '+', 'COUNT', 1)[1]
  return first and tonumber(string.match(first[1], '^%d+')) or 0
end

local answer = { wall_ms(), 0, 0, redis.call('HLEN', key('letters')) }
local all = redis.call('HGETALL', key('queues'))
for i = 1, #all, 2 do
  local queued, taken_of, since = 0, 0, 0
  for priority in string.gmatch(all[i + 1], '%S+') do
    local line = key('line', priority .. ':' .. all[i])
    local pending = redis.pcall('XPENDING', line, WORKERS)
    local taken = pending.err and 0 or pending[1]
    leased, taken_of = leased + taken, taken_of + taken
    queued = queued + redis.call('XLEN', line) - taken
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
