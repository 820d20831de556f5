#!lua flags=allow-oom
-- Finds tasks whose lease ran out. Takes nothing: the message about each is written by the driver, then posted by lapse.
-- Removes what nobody uses: consumers without a task for an hour, lines without one for a minute.
-- arguments  prefix, incarnation, limit
-- returns    for each task: consumer, id, line, token, packed text

local CONSUMER_MS, LINE_MS = 3600000, 60000
local limit = tonumber(argument())
local _, offset = lease_ms()
local answer = {}

local function find_in(line)
  local found = redis.call('XPENDING', key('line', line), WORKERS, 'IDLE', AGE - offset, '-', '+', limit)
  for _, pending in ipairs(found) do
    local entry = redis.call('XRANGE', key('line', line), pending[1], pending[1])[1]
    if entry then
      for _, value in ipairs({ pending[2], pending[1], line, entry[2][2], entry[2][4] }) do answer[#answer + 1] = value end
      limit = limit - 1
    else
      -- Somebody else has deleted it: there is nothing to tell anybody.
      redis.call('XACK', key('line', line), WORKERS, pending[1])
    end
  end
end

local function forget_consumers(line)
  for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', key('line', line), WORKERS)) do
    local name, pending, idle = consumer[2], consumer[4], consumer[6]
    if pending == 0 and idle > CONSUMER_MS then redis.call('XGROUP', 'DELCONSUMER', key('line', line), WORKERS, name) end
  end
end

-- By the time in the last id it gave, which is never later than the present one by much.
local function is_unused(line)
  if redis.call('XLEN', key('line', line)) > 0 then return false end
  local info = redis.call('XINFO', 'STREAM', key('line', line))
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then return wall_ms() - tonumber(string.match(info[i + 1], '^%d+')) > LINE_MS end
  end
end

local all = redis.call('HGETALL', key('queues'))
for i = 1, #all, 2 do
  local queue, kept = all[i], {}
  for priority in string.gmatch(all[i + 1], '%S+') do
    local line = priority .. ':' .. queue
    local has_group = redis.call('EXISTS', key('line', line)) == 1 and #redis.call('XINFO', 'GROUPS', key('line', line)) > 0
    if has_group and limit > 0 then find_in(line) end
    if has_group then forget_consumers(line) end
    if redis.call('EXISTS', key('line', line)) == 1 and is_unused(line) then redis.call('DEL', key('line', line)) end
    if redis.call('EXISTS', key('line', line)) == 1 then kept[#kept + 1] = priority end
  end
  if #kept == 0 then
    redis.call('HDEL', key('queues'), queue)
    redis.call('DEL', key('bell', queue))
  elseif table.concat(kept, ' ') ~= all[i + 1] then
    redis.call('HSET', key('queues'), queue, table.concat(kept, ' '))
  end
end
return answer
