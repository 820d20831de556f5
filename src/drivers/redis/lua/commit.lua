#!lua flags=allow-oom
-- Commits one batch whole or not at all. A script that fails half way is not rolled back: so every guard comes first, and
-- then only writes that cannot fail. Full memory does not stop it, or nothing could ever end and make room.
-- arguments  prefix, incarnation, partition, incarnation, epoch, nonce, seq, id, timeMs, suspect or '', then the lists below,
--            each after the number of its items
-- returns    'committed', 'alreadyApplied' or 'fenced'; an error if a version is not the next one, or a key is not ours

local partition, incarnation, epoch, nonce = argument(), argument(), argument(), argument()
local seq, id, time, suspect = argument(), argument(), argument(), argument()
local LISTS = {
  { 'records', 4 }, -- entity, version, count, stored text
  { 'consumed', 1 }, -- id
  { 'snapshots', 3 }, -- entity, version, stored text
  { 'headers', 5 }, -- entity, class, createdAtMs, workflow, text
  { 'wakes', 2 }, -- entity, atMs or ''
  { 'tasks', 4 }, -- token, queue, priority, packed text
  { 'revoke', 1 }, -- token
  { 'mail', 2 }, -- partition, text
  { 'replies', 2 }, -- process, text
  { 'discard', 1 }, -- id
  { 'letters', 3 }, -- id, atMs, text
  { 'listings', 5 }, -- list, id, entity, atMs, text or ''
  { 'purge', 1 }, -- entity
  { 'cut', 2 }, -- entity, version
}
local lists = {}
for _, list in ipairs(LISTS) do
  local count = tonumber(argument())
  lists[list[1]] = { at = at, count = count, width = list[2] }
  at = at + count * list[2]
end
if at ~= #ARGV then return redis.error_reply('MALFORMED these are not the arguments of a commit') end

local function each(name, visit)
  local list = lists[name]
  for i = 0, list.count - 1 do
    local before = list.at + i * list.width
    visit(unpack(ARGV, before + 1, before + list.width))
  end
end

local partition_key, tasks, queues = key('partition', partition), key('tasks'), key('queues')
local wakes, letters, letters_at = key('wakes', partition), key('letters'), key('letters', 'at')
local REPLIES, REPLY_SECONDS, BELLS = 10000, 3600, 100

-- ── guards ───────────────────────────────────────────────────────────────────────────────────────────────────────────

if not is_holder(partition, incarnation, epoch, nonce) then return 'fenced' end
local known = redis.call('HMGET', partition_key, 'seq', 'time', 'batch')
local next_seq = known[1] or '0'
if next_seq ~= seq then
  local is_resend = tonumber(next_seq) == tonumber(seq) + 1 and known[3] == id
  return is_resend and 'alreadyApplied' or 'fenced'
end

local foreign
local checked = {}
local function must_be(kind, name)
  if checked[name] then return end
  checked[name] = true
  local found = redis.call('TYPE', name).ok
  if found ~= kind and found ~= 'none' then foreign = name end
end

-- What is known of each entity that the batch names, and what is to be written of it, in one go for each.
local entities, names = {}, {}
local function entity_of(name)
  local entity = entities[name]
  if entity then return entity end
  entity = { key = key('entity', name), writes = {} }
  local fields = redis.pcall('HMGET', entity.key, 'version', 'place')
  if fields.err then
    foreign, fields = entity.key, {}
  end
  entity.version, entity.place = tonumber(fields[1] or 0), fields[2]
  entities[name] = entity
  names[#names + 1] = name
  return entity
end
local function may_leave_list(entity)
  local class = entity.place and string.match(entity.place, '^%S+')
  if class then must_be('zset', key('headers', class)) end
end

-- Where the journal of an entity may begin that is not there.
local beginnings = {}
each('cut', function(name, below)
  beginnings[name] = below
  must_be('list', key('journal', name))
end)

local wrong
each('records', function(name, version, count)
  local entity = entity_of(name)
  if entity.version == 0 and beginnings[name] == version then entity.version = version - 1 end
  must_be('list', key('journal', name))
  if tonumber(version) ~= entity.version + 1 or tonumber(count) < 1 then wrong = name end
  entity.version = version + count - 1
  entity.is_new = true
end)
each('snapshots', entity_of)
each('headers', function(name, class)
  may_leave_list(entity_of(name))
  must_be('zset', key('headers', class))
end)
each('tasks', function(_, queue, priority)
  must_be('stream', key('line', priority .. ':' .. queue))
  must_be('list', key('bell', queue))
end)
each('mail', function(to) must_be('stream', key('inbox', to)) end)
each('replies', function(process) must_be('list', key('replies', process)) end)
local function may_be_on(list)
  must_be('hash', key('list', list))
  must_be('zset', key('listing', list))
end
each('listings', function(list, id, name)
  may_be_on(list)
  must_be('hash', key('listed', name))
  local stored = not foreign and redis.call('HGET', key('list', list), id)
  if stored then must_be('hash', key('listed', string.match(stored, '^[^%z]*'))) end
end)
each('purge', function(name)
  may_leave_list(entity_of(name))
  must_be('hash', key('listed', name))
  if foreign then return end
  for _, listed in ipairs(redis.call('HKEYS', key('listed', name))) do
    may_be_on(string.match(listed, '^[^%z]*'))
  end
end)
must_be('stream', key('inbox', partition))
must_be('hash', tasks)
must_be('hash', queues)
must_be('zset', wakes)
must_be('hash', letters)
must_be('zset', letters_at)
each('revoke', function(token)
  local stored = not foreign and redis.call('HGET', tasks, token)
  if stored then must_be('stream', key('line', string.match(stored, '^%S+ (.*)$'))) end
end)
if foreign then return redis.error_reply('FOREIGN the key ' .. foreign .. ' is not what this store put there') end
if wrong then return redis.error_reply('VERSION is not the next one of ' .. wrong) end

-- ── writes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

local hints = {}
each('records', function(name, _, _, stored) redis.call('RPUSH', key('journal', name), stored) end)
for _, name in ipairs(names) do
  local entity = entities[name]
  if entity.is_new then
    entity.writes.version = entity.version
    hints[#hints + 1] = entity.version .. ' ' .. name
  end
end
if #hints > 0 then redis.call('PUBLISH', key('commits', partition), table.concat(hints, '\n')) end

local last_time = known[2] or '0'
if tonumber(time) > tonumber(last_time) then last_time = time end
local is_clean = suspect == ''
redis.call('HSET', partition_key, 'seq', tonumber(seq) + 1, 'batch', id, 'time', last_time, 'clean', is_clean and 1 or 0)
if is_clean then
  redis.call('HSET', partition_key, 'strikes', 0)
  redis.call('HDEL', partition_key, 'suspect')
else
  -- The owner has yet to show that it survives: vanishing now is a strike.
  redis.call('HSET', partition_key, 'suspect', suspect)
end

local consumed = {}
each('consumed', function(entry) consumed[#consumed + 1] = entry end)
call_in_parts({ 'XDEL', key('inbox', partition) }, consumed, {})

each('snapshots', function(name, version, stored)
  local entity = entities[name]
  local old = entity.writes.snapshot or redis.call('HGET', entity.key, 'snapshot')
  if not old or tonumber(string.match(old, '^(%d+) ')) <= tonumber(version) then entity.writes.snapshot = stored end
end)

-- The lists of executions: one sorted set for each class. The place an entity has there is written beside its header, so
-- that a header of the same class costs no write to a list.
local function leave_list(name, entity)
  if not entity.place then return end
  local class, workflow = string.match(entity.place, '^(%S+) %S+ (.*)$')
  redis.call('ZREM', key('headers', class), name .. '\0' .. workflow)
end
each('headers', function(name, class, created, workflow, text)
  local entity = entities[name]
  local place = class .. ' ' .. created .. ' ' .. workflow
  if entity.place ~= place then
    leave_list(name, entity)
    redis.call('ZADD', key('headers', class), created, name .. '\0' .. workflow)
    entity.place, entity.writes.place = place, place
  end
  entity.writes.header = text
end)
for _, name in ipairs(names) do
  local fields = {}
  for field, value in pairs(entities[name].writes) do
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  if #fields > 0 then redis.call('HSET', entities[name].key, unpack(fields)) end
end
each('wakes', function(entity, wake)
  if wake == '' then
    redis.call('ZREM', wakes, entity)
  else
    redis.call('ZADD', wakes, wake, entity)
  end
end)

-- A queue's priorities, the highest first.
local function add_line(queue, priority)
  local priorities = { priority }
  for other in string.gmatch(redis.call('HGET', queues, queue) or '', '%S+') do
    if other ~= priority then priorities[#priorities + 1] = other end
  end
  table.sort(priorities, function(a, b) return tonumber(a) > tonumber(b) end)
  redis.call('HSET', queues, queue, table.concat(priorities, ' '))
  redis.call('XGROUP', 'CREATE', key('line', priority .. ':' .. queue), WORKERS, '0', 'MKSTREAM')
end
local made, bells = {}, {}
each('tasks', function(token, queue, priority, text)
  if redis.call('HEXISTS', tasks, token) == 1 then return end
  local line = priority .. ':' .. queue
  if not made[line] and redis.call('EXISTS', key('line', line)) == 0 then add_line(queue, priority) end
  made[line] = true
  local entry = redis.call('XADD', key('line', line), '*', 'token', token, 'task', text)
  redis.call('HSET', tasks, token, entry .. ' ' .. line)
  bells[queue] = (bells[queue] or 0) + 1
end)
-- One for each task, as far as there can be somebody who waits: nobody need be woken who is at work.
for queue, count in pairs(bells) do
  local rings = {}
  for i = 1, math.min(count, BELLS) do rings[i] = '' end
  local length = redis.call('RPUSH', key('bell', queue), unpack(rings))
  if length > BELLS then redis.call('LTRIM', key('bell', queue), 0, BELLS - 1) end
end
-- After the tasks: what one batch both sends out and withdraws has to be gone.
each('revoke', function(token)
  local stored = redis.call('HGET', tasks, token)
  if not stored or string.sub(stored, 1, 1) == '!' then return end
  local entry, line = string.match(stored, '^(%S+) (.*)$')
  local pending = redis.pcall('XPENDING', key('line', line), WORKERS, entry, entry, 1)
  -- Without its group, which somebody has removed, nobody has it.
  if not pending.err and #pending > 0 then
    redis.call('HSET', tasks, token, '!' .. stored)
  else
    redis.call('XDEL', key('line', line), entry)
    redis.call('HDEL', tasks, token)
  end
end)

each('mail', post)
each('replies', function(process, text)
  local replies = key('replies', process)
  if redis.call('RPUSH', replies, text) > REPLIES then redis.call('LTRIM', replies, -REPLIES, -1) end
  redis.call('EXPIRE', replies, REPLY_SECONDS)
end)
each('discard', function(letter)
  redis.call('HDEL', letters, letter)
  redis.call('ZREM', letters_at, letter)
end)
each('letters', function(letter, at_ms, text)
  redis.call('HSET', letters, letter, text)
  redis.call('ZADD', letters_at, at_ms, letter)
end)

-- No name has a NUL in it, so one stands between them: in the fields of an entity's `listed`, which are list and id, and
-- in front of the text of an entry, which begins with its entity.
local function take_off(list, entry)
  local stored = redis.call('HGET', key('list', list), entry)
  if not stored then return end
  redis.call('HDEL', key('listed', string.match(stored, '^[^%z]*')), list .. '\0' .. entry)
  redis.call('HDEL', key('list', list), entry)
  redis.call('ZREM', key('listing', list), entry)
end
each('listings', function(list, entry, entity, at_ms, text)
  take_off(list, entry)
  if text ~= '' then
    redis.call('HSET', key('list', list), entry, entity .. '\0' .. text)
    redis.call('ZADD', key('listing', list), at_ms, entry)
    redis.call('HSET', key('listed', entity), list .. '\0' .. entry, '')
  end
end)
-- What ends before a version goes: found by halves, as records are in order of their versions. Of very many some stay.
local CUT = 10000
each('cut', function(name, below)
  local journal = key('journal', name)
  local low, high = 0, redis.call('LLEN', journal)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local version, count = string.match(redis.call('LINDEX', journal, middle), '^(%d+) (%d+) ')
    if version + count <= tonumber(below) then
      low = middle + 1
    else
      high = middle
    end
  end
  if low > 0 then redis.call('LTRIM', journal, math.min(low, CUT), -1) end
end)
-- Last: whatever else the batch says of an entity it purges, nothing of it is left.
each('purge', function(name)
  local entity = entities[name]
  for _, listed in ipairs(redis.call('HKEYS', key('listed', name))) do
    take_off(string.match(listed, '^(.*)%z(.*)$'))
  end
  leave_list(name, entity)
  entity.place = false
  redis.call('UNLINK', key('journal', name), entity.key, key('records', name))
  redis.call('ZREM', wakes, name)
end)
return 'committed'
