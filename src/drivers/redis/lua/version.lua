#!lua flags=no-writes
-- arguments  prefix, incarnation, entity
-- returns    the version it has: where the last record of its journal ends

local last = redis.call('LINDEX', key('journal', argument()), -1)
if not last then return 0 end
local version, count = string.match(last, '^(%d+) (%d+) ')
return version + count - 1
