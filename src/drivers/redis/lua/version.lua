#!lua flags=no-writes
-- arguments  prefix, incarnation, entity, '1' to be told of its header as well
-- returns    the version it has, which is where the last record of its journal ends, and 1 if its header says that it is open

local entity = argument()
local last = redis.call('LINDEX', key('journal', entity), -1)
if not last then return { 0, 0 } end
local version, count = string.match(last, '^(%d+) (%d+) ')
local place = argument() == '1' and redis.call('HGET', key('entity', entity), 'place')
return { version + count - 1, place and string.sub(place, 1, 5) == 'open ' and 1 or 0 }
