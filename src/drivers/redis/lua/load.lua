#!lua flags=no-writes
-- Reads entities. The first record may begin before the version asked for, because a record is opaque.
-- arguments  prefix, incarnation, a list of entities; for each: partition, version above which to read, or '' for the snapshot
--            and what came after it
-- returns    for each {snapshot or '', wake time or '', records …}, or nothing where there is none of this

local STEP = 64
local first, last = list(1)

local function load(entity, wake, version, above)
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

  local answer = { snapshot, wake or '' }
  for i = #found, 1, -1 do answer[#answer + 1] = found[i] end
  return answer
end

local answer = {}
local versions = read('HMGET', key('journals'), ARGV, first, last)
-- Those of one partition stand together, and most of what is asked for is a start of which there is nothing yet.
local from = first
while from <= last do
  local partition, upto = ARGV[at + 1], from
  while upto < last and ARGV[at + 1 + 2 * (upto + 1 - from)] == partition do upto = upto + 1 end
  local wakes = call('ZMSCORE', key('wakes', partition), unpack(ARGV, from, upto))
  for i = from, upto do
    local above = ARGV[at + 2]
    at = at + 2
    local wake, version = wakes[i - from + 1], versions[i - first + 1]
    -- A journal that nobody knows of is not ours. Whoever is told that there is nothing may write to it without a look.
    local is_found = wake or version or call('EXISTS', key('journal', ARGV[i])) == 1
    answer[i - first + 1] = is_found and load(ARGV[i], wake, version, above)
  end
  from = upto + 1
end
return answer
