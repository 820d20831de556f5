#!lua flags=allow-oom
-- Commits one batch whole or not at all. A script that fails half way is not rolled back: so every guard comes first, and
-- then only writes that cannot fail. Full memory does not stop it, or nothing could ever end and make room.
-- arguments  prefix, incarnation, partition, incarnation, epoch, nonce, seq, id, timeMs, suspect or '', then what
--            commit-arguments.ts makes of the batch, in the order in which it is taken up below
-- returns    'committed', 'alreadyApplied' or 'fenced'; 'queued' if it is committed and has leased nothing although it was to;
--            'alreadyLeased' if it was committed before, and has leased what it was to;
--            an error if a version is not the next one, or a key is not ours

local partition, incarnation, epoch, nonce = argument(), argument(), argument(), argument()
local seq, id, time, suspect = argument(), argument(), argument(), argument()
local partition_key = key('partition', partition)
local known = call('HMGET', partition_key, 'epoch', 'nonce', 'seq', 'time', 'batch', 'suspect', 'leased')
if incarnation ~= ARGV[2] or known[1] ~= epoch or known[2] ~= nonce then return 'fenced' end
local next_seq = known[3] or '0'
if next_seq ~= seq then
  local is_resend = tonumber(next_seq) == tonumber(seq) + 1 and known[5] == id
  if not is_resend then return 'fenced' end
  return known[7] == id and 'alreadyLeased' or 'alreadyApplied'
end

local hints = argument() -- what is published: versions and entities
local before = argument() -- the versions that entities must have which have new records, with spaces between
local news, news_end, changed = list(2) -- these entities, each once, and the version of each from now on
local records = at + 1 -- the record of each of them, as it is stored
at = at + changed
local more, more_end = list(2) -- entity, stored text; of those that have several records the others
local oldest, newest, behind = argument(), argument(), argument() -- ids: first and last consumed, and the next there may be
local headers, headers_end, headed = list(2) -- entity, each once, text
local placed = list(1) -- the place of each in the lists: class, createdAtMs, workflow
local asleep, asleep_end = list(1) -- entity
local awake, awake_end = list(2) -- atMs, entity
local packed, packed_end, sent = list(2) -- of tasks, each once, line by line: token, packed text

-- Lists that have a name, each with values of its own in front of it.
local function groups(width)
  local all = {}
  for i = 1, tonumber(argument()) do
    local group = { unpack(ARGV, at + 1, at + width) }
    at = at + width
    group.first, group.last = list(1)
    all[i] = group
  end
  return all
end
local lease_for = argument() -- how long those are leased that somebody waits for beside the owner, or ''
local lines = {} -- line, queue, priority, how many bells to ring, how many tasks, how many of them to lease at once
for i = 1, tonumber(argument()) do
  lines[i] =
    { argument(), argument(), argument(), tonumber(argument()), tonumber(argument()), tonumber(argument()) }
end
local done = groups(1) -- line; tokens of tasks whose results came with the batch and not through the inbox
local answers = groups(1) -- process; replies
-- What most batches have nothing of, all of it or none: it is passed over whole.
local has_more = at < #ARGV
local snapshots, snapshots_end, revoke, revoke_end, mail, mail_end, discard, discard_end = 1, 0, 1, 0, 1, 0, 1, 0
local letters, letters_end, dates, dates_end, listings, listings_end, cut, cut_end = 1, 0, 1, 0, 1, 0, 1, 0
local purge, purge_end, withdrawn, purged = 1, 0, 0, 0
if has_more then
  snapshots, snapshots_end = list(3) -- entity, version, stored text
  revoke, revoke_end, withdrawn = list(1) -- token
  mail, mail_end = list(2) -- partition, text
  discard, discard_end = list(1) -- id
  letters, letters_end = list(2) -- id, text
  dates, dates_end = list(2) -- atMs, id
  listings, listings_end = list(5) -- list, id, entity, atMs, text or ''
  purge, purge_end, purged = list(1) -- entity
  cut, cut_end = list(2) -- entity, version
end
if at ~= #ARGV then return redis.error_reply('MALFORMED these are not the arguments of a commit') end

local versions, places, tasks, queues = key('journals'), key('places'), key('tasks'), key('queues')
local inbox, wakes, journal = key('inbox', partition), key('wakes', partition), prefix .. ':journal:'
local dead, dead_at = key('letters'), key('letters', 'at')
local REPLIES, REPLY_SECONDS, BELLS = 10000, 3600, 100

-- ── guards ───────────────────────────────────────────────────────────────────────────────────────────────────────────

local foreign
local function must_be(kind, name)
  if not may_be(kind, name) then foreign = name end
end
local function look(command, name, values, first, last)
  local found = read(command, name, values, first, last)
  if not found.err then return found end
  foreign = name
  return {}
end
local function class_of(place) return string.match(place, '^%S+') end
local function may_leave_list(place)
  if place then must_be('zset', key('headers', class_of(place))) end
end

-- Every other argument.
local function halves(first, count)
  local half = {}
  for i = 1, count do half[i] = ARGV[first + 2 * i - 2] end
  return half
end

local names = halves(news, changed)
local reached = look('HMGET', versions, names, 1, changed)
for i = 1, changed do reached[i] = reached[i] or '0' end
local wrong
if not foreign and table.concat(reached, ' ') ~= before then
  local i = 0
  for expected in string.gmatch(before, '%S+') do
    i = i + 1
    local is_next = reached[i] == expected
    -- What is not there may begin where its journal is cut.
    for j = cut, cut_end, 2 do
      is_next = is_next or reached[i] == '0' and ARGV[j] == names[i] and tonumber(ARGV[j + 1]) == expected + 1
    end
    wrong = wrong or not is_next and names[i]
  end
end

local named = halves(headers, headed)
local stood = look('HMGET', places, named, 1, headed)
if headed > 0 then must_be('hash', key('headers')) end
for i = 1, headed do
  local place, old = ARGV[placed + i - 1], stood[i]
  if place ~= old then
    may_leave_list(old)
    must_be('zset', key('headers', class_of(place)))
  end
end

local tokens = halves(packed, sent)
local out = look('HMGET', tasks, tokens, 1, sent)
local priorities, rung = {}, {}
-- What waits on a line was there first, and what is on one of a higher priority goes before: then nothing is leased here.
local is_leasing = lease_for ~= ''
for i, group in ipairs(lines) do
  must_be('list', key('line', group[1]))
  if group[4] > 0 then
    local bell = key('bell', group[2])
    rung[bell] = pcall('LLEN', bell)
    if type(rung[bell]) == 'table' then foreign = bell end
  end
  local found = pcall('HGET', queues, group[2])
  if type(found) == 'table' then foreign, found = queues, false end
  priorities[i] = found
  if group[6] > 0 then
    must_be('zset', key('leases', group[1]))
    if is_there(key('line', group[1])) or found and found ~= group[3] then is_leasing = false end
  end
end
for _, group in ipairs(done) do must_be('zset', key('leases', group[1])) end
if #done > 0 then
  must_be('hash', tasks)
  must_be('set', key('revoked'))
end

-- Messages are read from the oldest on, so nothing is there that is older than what was consumed. If it is after all, what was
-- consumed is taken out one by one.
local older = {}
if oldest ~= '' then
  older = pcall('XRANGE', inbox, '-', '(' .. oldest, 'COUNT', 1)
  if older.err then
    foreign = inbox
  elseif #call('XRANGE', inbox, newest, newest) == 0 then
    -- A Redis that has lost its last writes may have lost nothing but these: what was made of them is not the truth.
    return 'fenced'
  end
end
if asleep_end >= asleep or awake_end >= awake or purged > 0 then must_be('zset', wakes) end
for _, group in ipairs(answers) do must_be('list', key('replies', group[1])) end
local left -- of what is purged, its place
if has_more then
  for i = cut, cut_end, 2 do must_be('list', journal .. ARGV[i]) end
  if snapshots_end > snapshots then must_be('hash', key('snapshots')) end
  local stored = look('HMGET', tasks, ARGV, revoke, revoke_end)
  if withdrawn > 0 then
    must_be('set', key('revoked'))
    must_be('hash', key('gone'))
    for _, group in ipairs(lines) do must_be('zset', key('leases', group[1])) end
    for i = 1, withdrawn do
      local line = stored[i] and line_of(stored[i])
      if line then must_be('zset', key('leases', line)) end
    end
  end
  for i = mail, mail_end, 2 do must_be('stream', key('inbox', ARGV[i])) end
  if discard_end >= discard or letters_end >= letters then
    must_be('hash', dead)
    must_be('zset', dead_at)
  end
  -- No name has a NUL in it, so one stands between them: in the fields of an entity's `listed`, which are list and id, and
  -- in front of the text of an entry, which begins with its entity.
  local function may_be_on(name)
    must_be('hash', key('list', name))
    must_be('zset', key('listing', name))
  end
  for i = listings, listings_end, 5 do
    may_be_on(ARGV[i])
    must_be('hash', key('listed', ARGV[i + 2]))
    local entry = not foreign and call('HGET', key('list', ARGV[i]), ARGV[i + 1])
    if entry then must_be('hash', key('listed', string.match(entry, '^[^%z]*'))) end
  end
  left = look('HMGET', places, ARGV, purge, purge_end)
  for i = 1, purged do
    may_leave_list(left[i])
    must_be('hash', key('listed', ARGV[purge + i - 1]))
    if not foreign then
      for _, listed in ipairs(call('HKEYS', key('listed', ARGV[purge + i - 1]))) do
        may_be_on(string.match(listed, '^[^%z]*'))
      end
    end
  end
  if purged > 0 then
    must_be('hash', versions)
    must_be('hash', key('headers'))
    must_be('hash', key('snapshots'))
  end
end
local function is_foreign(name)
  return redis.error_reply('FOREIGN the key ' .. name .. ' is not what this store put there')
end
if foreign then return is_foreign(foreign) end
if wrong then return redis.error_reply('VERSION is not the next one of ' .. wrong) end

-- ── writes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- A call costs Redis more than what it does: whatever can go in one call does. A journal is not looked at before it is
-- written to, so this comes first and can be undone.
for i = 1, changed do
  if type(pcall('RPUSH', journal .. names[i], ARGV[records + i - 1])) == 'table' then
    for j = 1, i - 1 do call('LTRIM', journal .. names[j], 0, -2) end
    return is_foreign(journal .. names[i])
  end
end
for i = more, more_end, 2 do call('RPUSH', journal .. ARGV[i], ARGV[i + 1]) end
write('HSET', versions, ARGV, news, news_end)
-- Only a hint, and a user may be kept from publishing: that must not end a commit half way.
if hints ~= '' then pcall('PUBLISH', key('commits', partition), hints) end

local last_time = known[4] or '0'
if tonumber(time) > tonumber(last_time) then last_time = time end
local advanced = tonumber(seq) + 1
if suspect == '' then
  call('HSET', partition_key, 'seq', advanced, 'batch', id, 'time', last_time, 'clean', '1', 'strikes', '0')
  if known[6] then call('HDEL', partition_key, 'suspect') end
else
  -- The owner has yet to show that it survives: vanishing now is a strike.
  call('HSET', partition_key, 'seq', advanced, 'batch', id, 'time', last_time, 'clean', '0', 'suspect', suspect)
end
if oldest ~= '' and #older == 0 then
  call('XTRIM', inbox, 'MINID', '=', behind)
elseif oldest ~= '' then
  for _, entry in ipairs(call('XRANGE', inbox, oldest, newest)) do call('XDEL', inbox, entry[1]) end
end

for _, group in ipairs(done) do
  write('ZREM', key('leases', group[1]), ARGV, group.first, group.last)
  write('HDEL', tasks, ARGV, group.first, group.last)
  if is_there(key('revoked')) then write('SREM', key('revoked'), ARGV, group.first, group.last) end
end

-- The lists of executions: one sorted set for each class. The place an entity has there is written beside its header, so
-- that a header of the same class costs no write to a list.
local leaving, entering, moved, place_of = {}, {}, {}, {}
local function among(all, name)
  local group = all[name]
  if not group then
    group = {}
    all[name] = group
  end
  return group
end
local function leave_list(name, place)
  local class, workflow = string.match(place, '^(%S+) %S+ (.*)$')
  local members = among(leaving, class)
  members[#members + 1] = name .. '\0' .. workflow
end
local function leave_lists()
  for class, members in pairs(leaving) do write('ZREM', key('headers', class), members, 1, #members) end
  leaving = {}
end
for i = 1, headed do
  local name, place, old = named[i], ARGV[placed + i - 1], stood[i]
  if place ~= old then
    if old then leave_list(name, old) end
    local class, created, workflow = string.match(place, '^(%S+) (%S+) (.*)$')
    local members, size = among(entering, class), #moved
    members[#members + 1] = created
    members[#members + 1] = name .. '\0' .. workflow
    moved[size + 1], moved[size + 2] = name, place
    place_of[name] = place
  end
end
write('HSET', key('headers'), ARGV, headers, headers_end)
write('HSET', places, moved, 1, #moved)
leave_lists()
for class, members in pairs(entering) do write('ZADD', key('headers', class), members, 1, #members) end

write('ZREM', wakes, ARGV, asleep, asleep_end)
write('ZADD', wakes, ARGV, awake, awake_end)

-- One that is out stays as it is.
local is_out
for i = 1, sent do
  if out[i] then
    is_out = is_out or {}
    is_out[tokens[i]] = true
  end
end
if is_out then
  for i = packed, packed_end, 2 do
    if not is_out[ARGV[i]] then call('HSET', tasks, ARGV[i], ARGV[i + 1]) end
  end
else
  write('HSET', tasks, ARGV, packed, packed_end)
end
is_leasing = is_leasing and not is_out
-- By its name, since a release that knows nothing of it leaves it there.
if is_leasing then call('HSET', partition_key, 'leased', id) end
local until_ms = is_leasing and lease_ms() + tonumber(lease_for)
local from = 0
for i, group in ipairs(lines) do
  local line, queue, priority, rings = key('line', group[1]), group[2], group[3], group[4]
  local there = priorities[i]
  if not there or not string.find(' ' .. there .. ' ', ' ' .. priority .. ' ', 1, true) then
    add_priority(queue, call('HGET', queues, queue), priority)
  end
  if is_out then
    for j = from + 1, from + group[5] do
      if not is_out[tokens[j]] then call('RPUSH', line, tokens[j]) end
    end
  else
    local leased = is_leasing and group[6] or 0
    if leased > 0 then lease_until(group[1], until_ms, tokens, from + 1, from + leased) end
    write('RPUSH', line, tokens, from + leased + 1, from + group[5])
  end
  from = from + group[5]
  -- One for each task, as far as there can be somebody who waits: nobody need be woken who is at work.
  local bell = key('bell', queue)
  if rings > 0 and rung[bell] < BELLS then
    local empty = {}
    for j = 1, math.min(rings, BELLS - rung[bell]) do empty[j] = '' end
    rung[bell] = call('RPUSH', bell, unpack(empty))
  end
end
for _, group in ipairs(answers) do
  local replies = key('replies', group[1])
  write('RPUSH', replies, ARGV, group.first, group.last)
  call('LTRIM', replies, -REPLIES, -1)
  call('EXPIRE', replies, REPLY_SECONDS)
end
if has_more then
  for i = snapshots, snapshots_end, 3 do
    local old = call('HGET', key('snapshots'), ARGV[i])
    if not old or tonumber(string.match(old, '^(%d+) ')) <= tonumber(ARGV[i + 1]) then
      call('HSET', key('snapshots'), ARGV[i], ARGV[i + 2])
    end
  end
  -- After the tasks: what one batch both sends out and withdraws has to be gone.
  for i = revoke, revoke_end do
    local token = ARGV[i]
    local text = call('HGET', tasks, token)
    local line = text and line_of(text)
    if line and call('ZSCORE', key('leases', line), token) then
      call('SADD', key('revoked'), token)
    elseif text then
      call('HDEL', tasks, token)
      if line then call('HINCRBY', key('gone'), line, 1) end
    end
  end
  for i = mail, mail_end, 2 do post(ARGV[i], ARGV[i + 1]) end
  write('HDEL', dead, ARGV, discard, discard_end)
  write('ZREM', dead_at, ARGV, discard, discard_end)
  write('HSET', dead, ARGV, letters, letters_end)
  write('ZADD', dead_at, ARGV, dates, dates_end)

  local function take_off(name, entry)
    local there = call('HGET', key('list', name), entry)
    if not there then return end
    call('HDEL', key('listed', string.match(there, '^[^%z]*')), name .. '\0' .. entry)
    call('HDEL', key('list', name), entry)
    call('ZREM', key('listing', name), entry)
  end
  for i = listings, listings_end, 5 do
    local name, entry, entity, at_ms, text = unpack(ARGV, i, i + 4)
    take_off(name, entry)
    if text ~= '' then
      call('HSET', key('list', name), entry, entity .. '\0' .. text)
      call('ZADD', key('listing', name), at_ms, entry)
      call('HSET', key('listed', entity), name .. '\0' .. entry, '')
    end
  end
  -- What ends before a version goes: found by halves, as records are in order of their versions. Of very many some stay.
  local CUT = 10000
  for i = cut, cut_end, 2 do
    local name, below = journal .. ARGV[i], tonumber(ARGV[i + 1])
    local low, high = 0, call('LLEN', name)
    while low < high do
      local middle = math.floor((low + high) / 2)
      local version, count = string.match(call('LINDEX', name, middle), '^(%d+) (%d+) ')
      if version + count <= below then
        low = middle + 1
      else
        high = middle
      end
    end
    if low > 0 then call('LTRIM', name, math.min(low, CUT), -1) end
  end
  -- Last: whatever else the batch says of an entity it purges, nothing of it is left.
  for i = 1, purged do
    local name = ARGV[purge + i - 1]
    for _, listed in ipairs(call('HKEYS', key('listed', name))) do
      take_off(string.match(listed, '^(.*)%z(.*)$'))
    end
    local place = place_of[name] or left[i]
    if place then leave_list(name, place) end
    call('UNLINK', journal .. name, key('records', name))
  end
  for _, name in ipairs({ versions, places, key('headers'), key('snapshots') }) do
    write('HDEL', name, ARGV, purge, purge_end)
  end
  write('ZREM', wakes, ARGV, purge, purge_end)
  leave_lists()
end
return (is_leasing or lease_for == '') and 'committed' or 'queued'
