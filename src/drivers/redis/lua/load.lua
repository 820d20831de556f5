#!lua flags=no-writes
-- Reads one entity. The first record may begin before the version asked for, because a record is opaque.
-- arguments  prefix, incarnation, partition, entity, version above which to read, or '' for the snapshot and what came after it
-- returns    {snapshot or '', wake time or '', records …}

local STEP = 64
local partition, entity, above = argument(), argument(), argument()
local snapshot = above == '' and redis.call('HGET', key('entity', entity), 'snapshot') or ''
if above == '' then above = string.match(snapshot, '^(%d+) ') or 0 end
above = tonumber(above)

-- From the end: what is asked for is nearly always the end.
local journal = key('journal', entity)
local first = redis.call('LLEN', journal)
local is_enough = first == 0
while not is_enough do
  local from = math.max(0, first - STEP)
  local step = redis.call('LRANGE', journal, from, first - 1)
  for i = #step, 1, -1 do
    local version, count = string.match(step[i], '^(%d+) (%d+) ')
    if version + count - 1 <= above then
      is_enough = true
      break
    end
    first = from + i - 1
  end
  if first == 0 then is_enough = true end
end

local answer = redis.call('LRANGE', journal, first, -1)
table.insert(answer, 1, redis.call('ZSCORE', key('wakes', partition), entity) or '')
table.insert(answer, 1, snapshot)
return answer
