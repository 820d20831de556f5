#!lua flags=allow-oom
-- Finds tasks whose lease ran out. Takes nothing: the message about each is written by the driver, then posted by lapse.
-- Forgets queues that nobody has used for a minute.
-- arguments  prefix, incarnation, limit
-- returns    for each task: token, packed text

local UNUSED_MS = 60000
local limit = tonumber(argument())
local now = lease_ms()
local answer = {}

local function find_in(line)
  local leases = key('leases', line)
  local tokens = call('ZRANGE', leases, '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, limit)
  local texts = read('HMGET', key('tasks'), tokens, 1, #tokens)
  for i, token in ipairs(tokens) do
    if texts[i] then
      answer[#answer + 1] = token
      answer[#answer + 1] = texts[i]
      limit = limit - 1
    else
      -- Somebody else has deleted it: there is nothing to tell anybody.
      call('ZREM', leases, token)
    end
  end
end

-- Of a line that nobody serves, or that others go before, no lease takes off what was withdrawn.
local MANY_WITHDRAWN = 1000
local function tidy(line)
  local name, gone = key('line', line), tonumber(call('HGET', key('gone'), line) or '0')
  if gone < 1 then return end
  local length = call('LLEN', name)
  if gone < length and (gone < MANY_WITHDRAWN or gone < length - gone) then return end
  local tokens = call('LRANGE', name, 0, -1)
  local texts, left, seen = read('HMGET', key('tasks'), tokens, 1, #tokens), {}, {}
  for i, token in ipairs(tokens) do
    if texts[i] and not seen[token] then left[#left + 1] = token end
    seen[token] = true
  end
  call('DEL', name)
  call('HDEL', key('gone'), line)
  write('RPUSH', name, left, 1, #left)
end

local all = call('HGETALL', key('queues'))
for i = 1, #all, 2 do
  local queue, kept, last = all[i], {}, nil
  for priority in string.gmatch(all[i + 1], '%S+') do
    local line = priority .. ':' .. queue
    if limit > 0 then find_in(line) end
    if may_be('list', key('line', line)) and may_be('hash', key('tasks')) then tidy(line) end
    if call('EXISTS', key('line', line), key('leases', line)) > 0 then kept[#kept + 1] = priority end
    if call('EXISTS', key('line', line)) == 0 then call('HDEL', key('gone'), line) end
    last = priority
  end
  if #kept > 0 then
    call('HDEL', key('unused'), queue)
  else
    local since = call('HGET', key('unused'), queue)
    if not since then
      call('HSET', key('unused'), queue, string.format('%.0f', now))
    elseif now - tonumber(since) > UNUSED_MS then
      call('HDEL', key('queues'), queue)
      call('HDEL', key('unused'), queue)
      call('DEL', key('bell', queue))
      last = nil
    end
    kept[1] = last
  end
  local priorities = table.concat(kept, ' ')
  if priorities ~= '' and priorities ~= all[i + 1] then call('HSET', key('queues'), queue, priorities) end
end
return answer
