-- What the scripts share; put in front of each of them. The first arguments of every script are the prefix of all keys and
-- the incarnation its caller has opened. Keys are made here and not declared: the profile is one primary, never a cluster.

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
if redis.call('HGET', key('store'), 'incarnation') ~= ARGV[2] then
  return redis.error_reply('STORELOST the store that was opened is not here any more')
end

local function wall_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The clock for leases: the wall clock, plus what it was ever set back. What it has seen is written down ten times a
-- second and not at every look: with a sync for every write, a look that finds nothing would cost as much as a commit.
local function lease_ms()
  local now = wall_ms()
  local known = redis.call('HMGET', key('clock'), 'wall', 'offset')
  local wall, offset = tonumber(known[1] or 0), tonumber(known[2] or 0)
  if now < wall then
    offset = offset + wall - now
    redis.call('HSET', key('clock'), 'wall', now, 'offset', offset)
  elseif now > wall + 100 then
    redis.call('HSET', key('clock'), 'wall', now)
  end
  return now + offset, offset
end

local function is_holder(partition, incarnation, epoch, nonce)
  if incarnation ~= ARGV[2] then return false end
  local known = redis.call('HMGET', key('partition', partition), 'epoch', 'nonce')
  return known[1] == epoch and known[2] == nonce
end

local function post(partition, text)
  redis.call('XADD', key('inbox', partition), '*', 'text', text)
end

-- To be asked before anything is taken away for which something is posted: a script that fails is not undone.
local streams = {}
local function may_be_stream(name)
  if streams[name] == nil then
    local found = redis.call('TYPE', name).ok
    streams[name] = found == 'stream' or found == 'none'
  end
  return streams[name]
end
local function can_post(partition) return may_be_stream(key('inbox', partition)) end

-- Calls with so many values that Lua could not hand them over at once: its stack ends near 8,000. Each answer is heard
-- together with where its values begin.
local function call_in_parts(head, values, tail, hear)
  for from = 1, #values, 1000 do
    local call = {}
    for i = 1, #head do call[i] = head[i] end
    for i = from, math.min(from + 999, #values) do call[#call + 1] = values[i] end
    for i = 1, #tail do call[#call + 1] = tail[i] end
    local answer = redis.call(unpack(call))
    if hear then hear(answer, from) end
  end
end

-- ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────
-- A queue is one stream for each priority, and a line is the name of one: `<priority>:<queue>`. The hash `tasks` tells of
-- each token where its task is, `<id> <line>`, with a `!` in front once it is revoked. The pending entry is the lease. Its
-- delivery time is when the lease ends by the clock for leases, moved back by an age, as Redis takes no time to come.

local WORKERS = 'workers'
local AGE = 68719476736

local function claim(line, consumer, ids, until_ms, flag)
  local head = { 'XCLAIM', key('line', line), WORKERS, consumer, 0 }
  local tail = { 'TIME', string.format('%.0f', until_ms - AGE), 'JUSTID', flag }
  local count = 0
  call_in_parts(head, ids, tail, function(claimed) count = count + #claimed end)
  return count
end

-- What is told of each token, false of those that are not out.
local function places_of(tokens)
  local places = {}
  call_in_parts({ 'HMGET', key('tasks') }, tokens, {}, function(found, from)
    for i, place in ipairs(found) do places[from + i - 1] = place end
  end)
  return places
end

-- A task's name is `<consumer> <id> <line>`: who has it, and where it is. Nothing if it is not of this token.
local function find_task(token, ref)
  local stored = redis.call('HGET', key('tasks'), token)
  if not stored then return nil end
  local consumer, id, line = string.match(ref, '^(%S+) (%S+) (.*)$')
  local is_revoked = string.sub(stored, 1, 1) == '!'
  if consumer == nil or string.sub(stored, is_revoked and 2 or 1) ~= id .. ' ' .. line then return nil end
  return { consumer = consumer, id = id, line = line, is_revoked = is_revoked }
end

-- Which of these are out at the places that were given with them, by their numbers, each token once. What is out under the
-- name that was given with it has been leased, and nobody but a settlement or a lapse removes that.
local function find_out(tokens, places)
  local stored, is_out = {}, {}
  for i, place in ipairs(places_of(tokens)) do stored[tokens[i]] = place and string.gsub(place, '^!', '') end
  for i, token in ipairs(tokens) do
    if stored[token] and stored[token] == places[i] then is_out[i], stored[token] = true, false end
  end
  return is_out
end

local function line_of(place) return string.match(place, '^%S+ (.*)$') end

local function remove_tasks(tokens, places, is_out)
  local ids_of, removed = {}, {}
  for i in pairs(is_out) do
    local line = line_of(places[i])
    ids_of[line] = ids_of[line] or {}
    table.insert(ids_of[line], string.match(places[i], '^%S+'))
    removed[#removed + 1] = tokens[i]
  end
  for line, ids in pairs(ids_of) do
    call_in_parts({ 'XACK', key('line', line), WORKERS }, ids, {})
    call_in_parts({ 'XDEL', key('line', line) }, ids, {})
  end
  call_in_parts({ 'HDEL', key('tasks') }, removed, {})
end
