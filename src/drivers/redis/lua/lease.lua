#!lua flags=allow-oom
-- Leases tasks, queues in the order given, within a queue the highest priority first, so many in all.
-- arguments  prefix, incarnation, max, leaseMs, consumer, then the queues
-- returns    for each task: id, line, token, packed text

local left, until_ms, consumer = tonumber(argument()), lease_ms() + tonumber(argument()), argument()
local answer = {}

-- Read without a pending entry and then claimed: so the entry is written once, with the end of its lease.
local function lease_from(line)
  local command = { 'XREADGROUP', 'GROUP', WORKERS, consumer, 'COUNT', left, 'NOACK', 'STREAMS', key('line', line), '>' }
  local found = redis.pcall(unpack(command))
  if found and found.err then
    -- Somebody has removed the stream, or only its group.
    if redis.call('EXISTS', key('line', line)) == 0 then return end
    redis.call('XGROUP', 'CREATE', key('line', line), WORKERS, '0')
    found = redis.call(unpack(command))
  end
  if not found then return end
  local entries, ids = found[1][2], {}
  for i, entry in ipairs(entries) do
    local fields = entry[2]
    ids[i] = entry[1]
    answer[#answer + 1] = entry[1]
    answer[#answer + 1] = line
    answer[#answer + 1] = fields[2]
    answer[#answer + 1] = fields[4]
  end
  left = left - #ids
  claim(line, consumer, ids, until_ms, 'FORCE')
end

local queues, quiet = {}, {}
while at < #ARGV do queues[#queues + 1] = argument() end
for i, priorities in ipairs(redis.call('HMGET', key('queues'), unpack(queues))) do
  for priority in string.gmatch(priorities or '', '%S+') do
    if left > 0 then lease_from(priority .. ':' .. queues[i]) end
  end
  -- It is empty now: nobody need be woken for it.
  if left > 0 then quiet[#quiet + 1] = key('bell', queues[i]) end
end
call_in_parts({ 'DEL' }, quiet, {})
return answer
