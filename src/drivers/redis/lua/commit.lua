#!lua flags=allow-oom
-- Commits one batch whole or not at all. A script that fails half way is not rolled back: so every guard comes first, and
-- then only writes that cannot fail. Full memory does not stop it, or nothing could ever end and make room.
-- arguments  prefix, partition, incarnation, epoch, nonce, seq, id, timeMs, then lists, each after the number of its items:
--            records (entity, version, count, format, text), suspect (text, none or one), consumed (id),
--            snapshots (entity, version, format, text), headers (entity, createdAtMs, text), wakes (entity, atMs or ''),
--            tasks (token, queue, priority, stored text), revoke (token), mail (partition, text),
--            replies (process, text), discard (id), dead letters (id, atMs, text),
--            listings (list, id, entity, atMs, text or ''), purge (entity)
-- returns    'committed', 'alreadyApplied' or 'fenced'; an error if a version is not the next one

local partition, incarnation, epoch, nonce, seq, id = argument(), argument(), argument(), argument(), argument(), argument()
local time = argument()
local partition_key = key('partition', partition)
-- Numbers in scores are exact up to 2^53: priorities from −1,000 to 1,000 and 2^42 tasks.
local ORDERS = 4398046511104
local REPLIES, REPLY_SECONDS = 10000, 3600

local function each(visit)
  for _ = 1, tonumber(argument()) do visit() end
end

if not is_holder(partition, incarnation, epoch, nonce) then return 'fenced' end
local known = redis.call('HMGET', partition_key, 'seq', 'time', 'batch')
local next_seq = known[1] or '0'
if next_seq ~= seq then
  local is_resend = tonumber(next_seq) == tonumber(seq) + 1 and known[3] == id
  return is_resend and 'alreadyApplied' or 'fenced'
end

local records_at = at
local versions = {}
local wrong
each(function()
  local entity, version, count = argument(), tonumber(argument()), tonumber(argument())
  at = at + 2
  local last = versions[entity] or tonumber(redis.call('HGET', key('entity', entity), 'version') or 0)
  if version ~= last + 1 or count < 1 then wrong = entity end
  versions[entity] = version + count - 1
end)
if wrong then return redis.error_reply('VERSION is not the next one of ' .. wrong) end

at = records_at
each(function()
  local entity, version, count, format, text = argument(), argument(), argument(), argument(), argument()
  redis.call('RPUSH', key('journal', entity), version .. ' ' .. count .. ' ' .. format .. ' ' .. text)
end)
for entity, version in pairs(versions) do
  redis.call('HSET', key('entity', entity), 'version', version)
  redis.call('PUBLISH', key('version', entity), version)
end

redis.call('HSET', partition_key, 'seq', tonumber(seq) + 1, 'batch', id)
if tonumber(time) > tonumber(known[2] or 0) then redis.call('HSET', partition_key, 'time', time) end
redis.call('HSET', partition_key, 'clean', 1)
redis.call('HDEL', partition_key, 'suspect')
local has_suspect = false
each(function()
  -- The owner has yet to show that it survives: vanishing now is a strike.
  has_suspect = true
  redis.call('HSET', partition_key, 'suspect', argument(), 'clean', 0)
end)
if not has_suspect then redis.call('HSET', partition_key, 'strikes', 0) end

each(function() redis.call('XDEL', key('inbox', partition), argument()) end)
each(function()
  local entity, version, format, text = argument(), argument(), argument(), argument()
  local old = redis.call('HGET', key('entity', entity), 'snapshot')
  if not old or tonumber(string.match(old, '^(%d+) ')) <= tonumber(version) then
    redis.call('HSET', key('entity', entity), 'snapshot', version .. ' ' .. format .. ' ' .. text)
  end
end)
each(function()
  local entity, created, text = argument(), argument(), argument()
  redis.call('HSET', key('entity', entity), 'header', text)
  redis.call('ZADD', key('headers'), created, entity)
end)
each(function()
  local entity, wake = argument(), argument()
  if wake == '' then
    redis.call('ZREM', key('wakes', partition), entity)
  else
    redis.call('ZADD', key('wakes', partition), wake, entity)
  end
end)

each(function()
  local token, queue, priority, text = argument(), argument(), tonumber(argument()), argument()
  if redis.call('HEXISTS', key('tasks'), token) == 0 then
    local order = redis.call('INCR', key('order'))
    redis.call('HSET', key('tasks'), token, order .. ' ' .. text)
    redis.call('ZADD', key('queue', queue), order - priority * ORDERS, token)
    redis.call('SADD', key('queues'), queue)
    redis.call('RPUSH', key('bell', queue), '')
  end
end)
-- After the tasks: what one batch both sends out and withdraws has to be gone.
each(function()
  local token = argument()
  local task = redis.call('HGET', key('tasks'), token)
  if task and redis.call('ZSCORE', key('leases'), token) then
    redis.call('SADD', key('revoked'), token)
  elseif task then
    local queue = cjson.decode(string.match(task, '^%d+ ([^\n]*)'))[1]
    redis.call('ZREM', key('queue', queue), token)
    redis.call('HDEL', key('tasks'), token)
  end
end)
each(function()
  local to = argument()
  post(to, argument())
end)
each(function()
  local replies = key('replies', argument())
  redis.call('RPUSH', replies, argument())
  redis.call('LTRIM', replies, -REPLIES, -1)
  redis.call('EXPIRE', replies, REPLY_SECONDS)
end)
each(function()
  local letter = argument()
  redis.call('HDEL', key('letters'), letter)
  redis.call('ZREM', key('letters', 'at'), letter)
end)
each(function()
  local letter, at_ms, text = argument(), argument(), argument()
  redis.call('HSET', key('letters'), letter, text)
  redis.call('ZADD', key('letters', 'at'), at_ms, letter)
end)
-- No name has a NUL in it, so one stands between them: in the fields of an entity's `listed`, which are list and id, and
-- in front of the text of an entry, which begins with its entity.
local function take_off(list, id)
  local known = redis.call('HGET', key('list', list), id)
  if not known then return end
  redis.call('HDEL', key('listed', string.match(known, '^[^%z]*')), list .. '\0' .. id)
  redis.call('HDEL', key('list', list), id)
  redis.call('ZREM', key('listing', list), id)
end
each(function()
  local list, id, entity, at_ms, text = argument(), argument(), argument(), argument(), argument()
  take_off(list, id)
  if text ~= '' then
    redis.call('HSET', key('list', list), id, entity .. '\0' .. text)
    redis.call('ZADD', key('listing', list), at_ms, id)
    redis.call('HSET', key('listed', entity), list .. '\0' .. id, '')
  end
end)
-- Last: whatever else the batch says of an entity it purges, nothing of it is left.
each(function()
  local entity = argument()
  for _, listed in ipairs(redis.call('HKEYS', key('listed', entity))) do
    take_off(string.match(listed, '^(.*)%z(.*)$'))
  end
  redis.call('DEL', key('journal', entity), key('entity', entity), key('records', entity))
  redis.call('ZREM', key('headers'), entity)
  redis.call('ZREM', key('wakes', partition), entity)
end)
return 'committed'
