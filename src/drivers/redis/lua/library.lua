-- What the scripts share; put in front of each of them. The first arguments of every script are the prefix of all keys and
-- the incarnation its caller has opened. Keys are made here and not declared: the profile is one primary, never a cluster.
-- Redis runs a command in less time than Lua takes to make its arguments and to read its answer. So arguments come in the
-- order in which a command takes them, and go to it in one piece.

local call, pcall = redis.call, redis.pcall
local prefix = ARGV[1]
local at = 2

local function argument()
  at = at + 1
  return ARGV[at]
end

local function key(kind, name)
  if name == nil then return prefix .. ':' .. kind end
  return prefix .. ':' .. kind .. ':' .. name
end

-- Another store, or none, under the same address: whatever the caller knows, it does not know of this one.
if call('HGET', prefix .. ':store', 'id') ~= ARGV[2] then
  return redis.error_reply('STORELOST the store that was opened is not here any more')
end

local function wall_ms()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The clock for leases: the wall clock, plus what it was ever set back. What it has seen is written down ten times a
-- second and not at every look: with a sync for every write, a look that finds nothing would cost as much as a commit.
local function lease_ms()
  local now = wall_ms()
  local known = call('HMGET', key('clock'), 'wall', 'offset')
  local wall, offset = tonumber(known[1] or 0), tonumber(known[2] or 0)
  if now < wall then
    offset = offset + wall - now
    call('HSET', key('clock'), 'wall', now, 'offset', offset)
  elseif now > wall + 100 then
    call('HSET', key('clock'), 'wall', now)
  end
  return now + offset
end

local function is_holder(partition, incarnation, epoch, nonce)
  if incarnation ~= ARGV[2] then return false end
  local known = call('HMGET', key('partition', partition), 'epoch', 'nonce')
  return known[1] == epoch and known[2] == nonce
end

local function post(partition, text) call('XADD', prefix .. ':inbox:' .. partition, '*', 'text', text) end

-- The next list of arguments, of so many items with so many values each, which their number stands in front of: where it
-- begins and ends, and that number.
local function list(width)
  local count = tonumber(argument())
  local first = at + 1
  at = at + count * width
  return first, at, count
end

-- Calls with so many values that Lua could not hand them over at once: its stack ends near 8,000. Parts are even, so that
-- pairs stay together.
local PART = 1000

local function write(command, name, values, first, last)
  for from = first, last, PART do
    call(command, name, unpack(values, from, math.min(from + PART - 1, last)))
  end
end

-- The answers to a call that tells something of each value, in one table; an error as `pcall` gives it.
local function read(command, name, values, first, last)
  if last < first then return {} end
  if last - first < PART then return pcall(command, name, unpack(values, first, last)) end
  local answers = {}
  for from = first, last, PART do
    local part = pcall(command, name, unpack(values, from, math.min(from + PART - 1, last)))
    if part.err then return part end
    for i = 1, #part do answers[from - first + i] = part[i] end
  end
  return answers
end

-- To be asked before anything is taken away for which something is posted: a script that fails is not undone.
local kinds = {}
local function may_be(kind, name)
  local found = kinds[name]
  if found == nil then
    found = call('TYPE', name).ok
    kinds[name] = found
  end
  return found == kind or found == 'none'
end
-- Of one that was asked about.
local function is_there(name) return kinds[name] ~= 'none' end

-- ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────
-- The hash `tasks` has each task that is out, by its token. A queue is one list of tokens for each priority, and a line is
-- the name of one: `<priority>:<queue>`. What is leased is not on it any more but among the `leases` of its line, by when its
-- lease ends. A task that is withdrawn before it was leased leaves its token on the line, as nobody can find it there; `gone`
-- counts those.

-- The names that are packed in front of a task's text, see packed-task.ts. Of what we did not put there, nothing.
local function names_of(packed)
  local head = string.match(packed, '^%[[^\n]*')
  return head and cjson.decode(head)
end

local function line_of(packed)
  local names = names_of(packed)
  return names and string.format('%d:%s', names[4], names[1])
end

local function lease_until(line, until_ms, tokens, first, last)
  local moments, size, score = {}, 0, string.format('%.0f', until_ms)
  for i = first, last do
    moments[size + 1], moments[size + 2] = score, tokens[i]
    size = size + 2
  end
  write('ZADD', key('leases', line), moments, 1, size)
end

-- The priorities of a queue, the highest first.
local function add_priority(queue, known, priority)
  local priorities = { priority }
  for other in string.gmatch(known or '', '%S+') do priorities[#priorities + 1] = other end
  table.sort(priorities, function(a, b) return tonumber(a) > tonumber(b) end)
  call('HSET', key('queues'), queue, table.concat(priorities, ' '))
end
