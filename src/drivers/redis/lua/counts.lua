#!lua flags=no-writes
-- arguments  prefix, incarnation, number of partitions
-- returns    {storeTimeMs, messages in inboxes, leased tasks, dead letters, then for each queue: name, queued tasks}

local inbox, leased = 0, 0
for partition = 0, tonumber(argument()) - 1 do
  inbox = inbox + redis.call('XLEN', key('inbox', partition))
end
local answer = { wall_ms(), 0, 0, redis.call('HLEN', key('letters')) }
local all = redis.call('HGETALL', key('queues'))
for i = 1, #all, 2 do
  local queued = 0
  for priority in string.gmatch(all[i + 1], '%S+') do
    local line = key('line', priority .. ':' .. all[i])
    local pending = redis.pcall('XPENDING', line, WORKERS)
    local taken = pending.err and 0 or pending[1]
    leased = leased + taken
    queued = queued + redis.call('XLEN', line) - taken
  end
  answer[#answer + 1] = all[i]
  answer[#answer + 1] = queued
end
answer[2], answer[3] = inbox, leased
return answer
