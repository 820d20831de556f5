#!lua flags=no-writes
-- What a commit by a transaction relies on (see watched-standing.ts): whoever is about to make one watches the partitions, the
-- queues and the store, and then looks here.
-- arguments  prefix, incarnation, '1' to look whether the keys are ours, a list of partitions, a list of queues with a
--            priority of each, a list of processes that are answered
-- returns    for each partition '<epoch> <nonce> <seq> <time>', or '' where only a script may commit; for each queue '1' if
--            those who lease from it know this priority, else '0'; nothing at all where a key is not ours

local is_checking = argument() == '1'
local partitions, partitions_end = list(1)
local queues, queues_end = list(2)
local processes, processes_end = list(1)

local is_ours = true
local function must_be(kind, name) is_ours = is_ours and may_be(kind, name) end
if is_checking then
  for _, name in ipairs({ 'journals', 'headers', 'places', 'tasks', 'queues' }) do must_be('hash', key(name)) end
  for _, class in ipairs({ 'open', 'endedWell', 'endedBadly' }) do must_be('zset', key('headers', class)) end
  must_be('set', key('revoked'))
  for i = queues, queues_end, 2 do
    local line = ARGV[i + 1] .. ':' .. ARGV[i]
    must_be('list', key('line', line))
    must_be('zset', key('leases', line))
    must_be('list', key('bell', ARGV[i]))
  end
  for i = processes, processes_end do must_be('list', key('replies', ARGV[i])) end
  for i = partitions, partitions_end do
    must_be('stream', key('inbox', ARGV[i]))
    must_be('zset', key('wakes', ARGV[i]))
  end
  if not is_ours then return {} end
end

local answer = {}
for i = partitions, partitions_end do
  local known = call('HMGET', key('partition', ARGV[i]), 'epoch', 'nonce', 'seq', 'time', 'suspect')
  local is_plain = known[1] and known[2] and not known[5]
  answer[#answer + 1] = is_plain
      and table.concat({ known[1], known[2], known[3] or '0', known[4] or '0' }, ' ')
    or ''
end
for i = queues, queues_end, 2 do
  local known = call('HGET', key('queues'), ARGV[i])
  local is_known = known and string.find(' ' .. known .. ' ', ' ' .. ARGV[i + 1] .. ' ', 1, true)
  answer[#answer + 1] = is_known and '1' or '0'
end
return answer
