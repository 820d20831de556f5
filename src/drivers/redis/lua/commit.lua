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
  { 'settled', 2 }, -- token, place
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
  { 'attended', 2 }, -- queue, how many of its tasks the caller looks for without a bell
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

local known = redis.call('HMGET', partition_key, 'epoch', 'nonce', 'seq', 'time', 'batch', 'suspect')
if incarnation ~= ARGV[2] or known[1] ~= epoch or known[2] ~= nonce then return 'fenced' end
local next_seq = known[3] or '0'
if next_seq ~= seq then
  local is_resend = tonumber(next_seq) == tonumber(seq) + 1 and known[5] == id
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

-- What is known of each entity that the batch tells about, and what is to be written of it, in one go for each.
local entities, names = {}, {}
local function entity_of(name)
  local entity = entities[name]
  if entity then return entity end
  entity = { key = key('entity', name), writes = {} }
  local fields = redis.pcall('HMGET', entity.key, 'place')
  if fields.err then
    foreign, fields = entity.key, {}
  end
  entity.place = fields[1]
  entity.old_place = entity.place
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

-- The version an entity has is where the last record of its journal ends.
local versions, written = {}, {}
local function version_of(name)
  if versions[name] then return versions[name] end
  written[#written + 1] = name
  local last = redis.pcall('LINDEX', key('journal', name), -1)
  if type(last) == 'table' then foreign = key('journal', name) end
  if type(last) ~= 'string' then return 0 end
  local version, count = string.match(last, '^(%d+) (%d+) ')
  return version + count - 1
end
local wrong
each('records', function(name, version, count)
  local reached = version_of(name)
  if reached == 0 and beginnings[name] == version then reached = version - 1 end
  if tonumber(version) ~= reached + 1 or tonumber(count) < 1 then wrong = name end
  versions[name] = version + count - 1
end)
each('snapshots', entity_of)
local ended = {}
each('headers', function(name, class)
  if class ~= 'open' then ended[name] = '+' end
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
must_be('zset', wakes)
if lists.tasks.count + lists.revoke.count + lists.settled.count > 0 then
  must_be('hash', tasks)
  must_be('hash', queues)
end
if lists.discard.count + lists.letters.count > 0 then
  must_be('hash', letters)
  must_be('zset', letters_at)
end
local done, done_at = {}, {}
each('settled', function(token, place)
  done[#done + 1], done_at[#done_at + 1] = token, place
  if line_of(place) then must_be('stream', key('line', line_of(place))) end
end)
each('revoke', function(token)
  local stored = not foreign and redis.call('HGET', tasks, token)
  if stored then must_be('stream', key('line', string.match(stored, '^%S+ (.*)$'))) end
end)
if foreign then return redis.error_reply('FOREIGN the key ' .. foreign .. ' is not what this store put there') end
if wrong then return redis.error_reply('VERSION is not the next one of ' .. wrong) end

-- ── writes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- A call costs Redis more than what it does: whatever can go in one call does.

each('records', function(name, _, _, stored) redis.call('RPUSH', key('journal', name), stored) end)
if #written > 0 then
  local hints = {}
  for i, name in ipairs(written) do hints[i] = (ended[name] or '') .. versions[name] .. ' ' .. name end
  redis.call('PUBLISH', key('commits', partition), table.concat(hints, '\n'))
end

local last_time = known[4] or '0'
if tonumber(time) > tonumber(last_time) then last_time = time end
local advanced = tonumber(seq) + 1
if suspect == '' then
  redis.call('HSET', partition_key, 'seq', advanced, 'batch', id, 'time', last_time, 'clean', 1, 'strikes', 0)
  if known[6] then redis.call('HDEL', partition_key, 'suspect') end
else
  -- The owner has yet to show that it survives: vanishing now is a strike.
  redis.call('HSET', partition_key, 'seq', advanced, 'batch', id, 'time', last_time, 'clean', 0, 'suspect', suspect)
end

local consumed = {}
each('consumed', function(entry) consumed[#consumed + 1] = entry end)
call_in_parts({ 'XDEL', key('inbox', partition) }, consumed, {})

-- Tasks whose results came with the batch and not through the inbox.
remove_tasks(done, done_at, find_out(done, done_at))

each('snapshots', function(name, version, stored)
  local entity = entities[name]
  local old = entity.writes.snapshot or redis.call('HGET', entity.key, 'snapshot')
  if not old or tonumber(string.match(old, '^(%d+) ')) <= tonumber(version) then entity.writes.snapshot = stored end
end)

-- The lists of executions: one sorted set for each class. The place an entity has there is written beside its header, so
-- that a header of the same class costs no write to a list.
each('headers', function(name, class, created, workflow, text)
  local entity = entities[name]
  entity.place = class .. ' ' .. created .. ' ' .. workflow
  entity.writes.header = text
end)
local leaving, entering = {}, {}
local function among(groups, class)
  groups[class] = groups[class] or {}
  return groups[class]
end
local function leave_list(name, place)
  local class, workflow = string.match(place, '^(%S+) %S+ (.*)$')
  local members = among(leaving, class)
  members[#members + 1] = name .. '\0' .. workflow
end
for _, name in ipairs(names) do
  local entity = entities[name]
  if entity.place ~= entity.old_place then
    if entity.old_place then leave_list(name, entity.old_place) end
    local class, created, workflow = string.match(entity.place, '^(%S+) (%S+) (.*)$')
    local members = among(entering, class)
    members[#members + 1] = created
    members[#members + 1] = name .. '\0' .. workflow
    entity.writes.place = entity.place
  end
  local fields = {}
  for field, value in pairs(entity.writes) do
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  if #fields > 0 then redis.call('HSET', entity.key, unpack(fields)) end
end
local function leave_lists()
  for class, members in pairs(leaving) do call_in_parts({ 'ZREM', key('headers', class) }, members, {}) end
  leaving = {}
end
leave_lists()
for class, members in pairs(entering) do call_in_parts({ 'ZADD', key('headers', class) }, members, {}) end

-- What is said last of an entity counts.
local wake_of, asleep, awake = {}, {}, {}
each('wakes', function(entity, wake) wake_of[entity] = wake end)
for entity, wake in pairs(wake_of) do
  if wake == '' then
    asleep[#asleep + 1] = entity
  else
    awake[#awake + 1] = wake
    awake[#awake + 1] = entity
  end
end
call_in_parts({ 'ZREM', wakes }, asleep, {})
call_in_parts({ 'ZADD', wakes }, awake, {})

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
local made, bells, places, tokens, is_out = {}, {}, {}, {}, {}
each('tasks', function(token) tokens[#tokens + 1] = token end)
for i, place in ipairs(places_of(tokens)) do is_out[tokens[i]] = place end
each('tasks', function(token, queue, priority, text)
  if is_out[token] then return end
  is_out[token] = true
  local line = priority .. ':' .. queue
  if not made[line] and redis.call('EXISTS', key('line', line)) == 0 then add_line(queue, priority) end
  made[line] = true
  places[#places + 1] = token
  places[#places + 1] = redis.call('XADD', key('line', line), '*', 'token', token, 'task', text) .. ' ' .. line
  bells[queue] = (bells[queue] or 0) + 1
end)
call_in_parts({ 'HSET', tasks }, places, {})
-- One for each task, as far as there can be somebody who waits: nobody need be woken who is at work.
each('attended', function(queue, count) bells[queue] = bells[queue] and bells[queue] - count end)
for queue, count in pairs(bells) do
  local rings = {}
  for i = 1, math.min(count, BELLS) do rings[i] = '' end
  if #rings > 0 then
    local length = redis.call('RPUSH', key('bell', queue), unpack(rings))
    if length > BELLS then redis.call('LTRIM', key('bell', queue), 0, BELLS - 1) end
  end
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
local answers = {}
each('replies', function(process, text)
  local texts = among(answers, process)
  texts[#texts + 1] = text
end)
for process, texts in pairs(answers) do
  local replies = key('replies', process)
  call_in_parts({ 'RPUSH', replies }, texts, {})
  redis.call('LTRIM', replies, -REPLIES, -1)
  redis.call('EXPIRE', replies, REPLY_SECONDS)
end
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
  if entity.place then leave_list(name, entity.place) end
  entity.place = false
  redis.call('UNLINK', key('journal', name), entity.key, key('records', name))
  redis.call('ZREM', wakes, name)
end)
leave_lists()
return 'committed'
