#!lua flags=allow-oom
-- Removes tasks and posts their results in one step. Of a task that is gone only a completion is posted.
-- arguments  prefix, incarnation, for each result '1' for a completion or '0', all in one word, the number of partitions, each
--            with the number of its results; texts and tokens in this order, partition by partition; then for each line
--            that tasks were leased from its name and a list of their tokens, none twice: if there is one line only and
--            its tokens are all, its name alone
-- returns    one word: for each result 's' if it is settled, 'p' if it is posted only, '-' if it is stale

local kinds_of = argument()
local count = #kinds_of
local function foreign(name) return redis.error_reply('FOREIGN the key ' .. name) end
local tasks, revoked = key('tasks'), key('revoked')
if not may_be('hash', tasks) then return foreign(tasks) end
if not may_be('set', revoked) then return foreign(revoked) end
local partitions = {}
for i = 1, tonumber(argument()) do
  partitions[i] = { key('inbox', argument()), tonumber(argument()) }
end
local texts, tokens = at, at + count
at = tokens + count

-- What is leased from another line than the one named with it is not there.
local lines, ends = {}, {}
while at < #ARGV do
  local leases = key('leases', argument())
  local first, last = tokens + 1, tokens + count
  if at < #ARGV then
    first, last = list(1)
  end
  local found = read('ZMSCORE', leases, ARGV, first, last)
  if found.err then return foreign(leases) end
  for i = first, last do ends[ARGV[i]] = found[i - first + 1] or ends[ARGV[i]] end
  lines[#lines + 1] = { leases, first, last }
end

-- An inbox is not looked at before it is written to, so this comes before anything is taken away, and can be undone.
local posted = {}
local outcomes, removed, from = {}, {}, 0
for _, partition in ipairs(partitions) do
  local inbox = partition[1]
  for i = from + 1, from + partition[2] do
    local token = ARGV[tokens + i]
    local is_out = ends[token]
    local is_posted = is_out or string.byte(kinds_of, i) == 49
    if is_out then
      removed[#removed + 1] = token
      -- A second result for the same is one for a task that is gone.
      ends[token] = nil
    end
    if is_posted then
      local id = pcall('XADD', inbox, '*', 'text', ARGV[texts + i])
      if type(id) == 'table' then
        for j = 1, #posted, 2 do call('XDEL', posted[j], posted[j + 1]) end
        return foreign(inbox)
      end
      local size = #posted
      posted[size + 1], posted[size + 2] = inbox, id
    end
    outcomes[i] = is_out and 's' or is_posted and 'p' or '-'
  end
  from = from + partition[2]
end
for _, line in ipairs(lines) do write('ZREM', line[1], ARGV, line[2], line[3]) end
write('HDEL', tasks, removed, 1, #removed)
if is_there(revoked) then write('SREM', revoked, removed, 1, #removed) end
return table.concat(outcomes)
