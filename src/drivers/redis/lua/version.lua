#!lua flags=no-writes
-- arguments  prefix, incarnation, entity, '1' to be told of its header as well
-- returns    the version it has, and 1 if its header says that it is open

local entity = argument()
local version = call('HGET', key('journals'), entity)
if not version then return { 0, 0 } end
local place = argument() == '1' and call('HGET', key('places'), entity)
return { tonumber(version), place and string.sub(place, 1, 5) == 'open ' and 1 or 0 }
