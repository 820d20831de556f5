#!lua flags=allow-oom
-- Leases tasks, queues in the order given, within a queue the highest priority first, so many in all.
-- arguments  prefix, incarnation, max, leaseMs, then the queues
-- returns    for each task: token, packed text

local left, until_ms = tonumber(argument()), lease_ms() + tonumber(argument())
local tasks = key('tasks')
local answer, size = {}, 0

-- Tokens of tasks that were withdrawn stand on their line until somebody comes by: many are taken off at once.
local function drop_withdrawn(line)
  local tokens = call('LRANGE', key('line', line), 0, PART - 1)
  local texts, dead = read('HMGET', tasks, tokens, 1, #tokens), 0
  while dead < #tokens and not texts[dead + 1] do dead = dead + 1 end
  if dead == 0 then return end
  call('LTRIM', key('line', line), dead, -1)
  pcall('HINCRBY', key('gone'), line, -dead)
end

local function lease_from(line)
  -- What is taken off its line and cannot be leased would be lost.
  if not (may_be('hash', tasks) and may_be('zset', key('leases', line))) then return end
  while left > 0 do
    local asked = math.min(left, PART)
    local tokens = pcall('LPOP', key('line', line), asked)
    if not tokens or tokens.err then return end
    local leased, gone = {}, 0
    local texts = read('HMGET', tasks, tokens, 1, #tokens)
    for i = 1, #tokens do
      local text = texts[i]
      if text then
        leased[#leased + 1] = tokens[i]
        answer[size + 1], answer[size + 2] = tokens[i], text
        size = size + 2
      else
        gone = gone + 1
      end
    end
    if gone > 0 then pcall('HINCRBY', key('gone'), line, -gone) end
    lease_until(line, until_ms, leased, 1, #leased)
    left = left - #leased
    if #tokens < asked then return end
    if gone == #tokens then drop_withdrawn(line) end
  end
end

local first, quiet = at + 1, {}
for i, priorities in ipairs(call('HMGET', key('queues'), unpack(ARGV, first))) do
  for priority in string.gmatch(priorities or '', '%S+') do
    if left > 0 then lease_from(priority .. ':' .. ARGV[first + i - 1]) end
  end
  -- It is empty now: nobody need be woken for it. One of which nothing is known has no bell.
  if left > 0 and priorities then quiet[#quiet + 1] = key('bell', ARGV[first + i - 1]) end
end
if #quiet > 0 then call('DEL', unpack(quiet)) end
return answer
