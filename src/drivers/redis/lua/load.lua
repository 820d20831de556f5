#!lua flags=no-writes
-- Reads entities. The first record may begin before the version asked for, because a record is opaque.
-- arguments  prefix, incarnation, then for each: partition, entity, version above which to read, or '' for the snapshot and
--            what came after it
-- returns    for each {snapshot or '', wake time or '', records …}

local STEP = 64

local function load(partition, entity, above)
  local snapshot = above == '' and redis.call('HGET', key('entity', entity), 'snapshot') or ''
  if above == '' then above = string.match(snapshot, '^(%d+) ') or 0 end
  above = tonumber(above)

  -- From the end: what is asked for is nearly always the end.
  local journal = key('journal', entity)
  local first, found = redis.call('LLEN', journal), {}
  while first > 0 do
    local from = math.max(0, first - STEP)
    local step = redis.call('LRANGE', journal, from, first - 1)
    first = from
    for i = #step, 1, -1 do
      local version, count = string.match(step[i], '^(%d+) (%d+) ')
      if version + count - 1 <= above then
        first = 0
        break
      end
      found[#found + 1] = step[i]
    end
  end

  local answer = { snapshot, redis.call('ZSCORE', key('wakes', partition), entity) or '' }
  for i = #found, 1, -1 do answer[#answer + 1] = found[i] end
  return answer
end

local answer = {}
while at < #ARGV do answer[#answer + 1] = load(argument(), argument(), argument()) end
return answer
