#!lua flags=no-writes
-- Reads entities. The first record may begin before the version asked for, because a record is opaque.
-- arguments  prefix, incarnation, a list of entities; for each: partition, version above which to read, or '' for the snapshot
--            and what came after it
-- returns    for each {snapshot or '', wake time or '', records …}

local STEP = 64
local first, last = list(1)

local function load(partition, entity, version, above)
  local wake = call('ZSCORE', key('wakes', partition), entity) or ''
  local snapshot = above == '' and version and call('HGET', key('snapshots'), entity) or ''
  if above == '' then above = string.match(snapshot, '^(%d+) ') or 0 end
  above = tonumber(above)

  -- From the end: what is asked for is nearly always the end.
  local journal = key('journal', entity)
  local begin, found = version and call('LLEN', journal) or 0, {}
  while begin > 0 do
    local from = math.max(0, begin - STEP)
    local step = call('LRANGE', journal, from, begin - 1)
    begin = from
    for i = #step, 1, -1 do
      local version, count = string.match(step[i], '^(%d+) (%d+) ')
      if version + count - 1 <= above then
        begin = 0
        break
      end
      found[#found + 1] = step[i]
    end
  end

  local answer = { snapshot, wake }
  for i = #found, 1, -1 do answer[#answer + 1] = found[i] end
  return answer
end

local answer = {}
local versions = read('HMGET', key('journals'), ARGV, first, last)
for i = first, last do
  local partition, above = argument(), argument()
  answer[i - first + 1] = load(partition, ARGV[i], versions[i - first + 1], above)
end
return answer
