#!lua flags=allow-oom
-- Takes a name and its versions off the lists. Their numbers stay: one is never used for another content.
-- arguments  prefix, incarnation, name
-- returns    nothing

local name = argument()
call('DEL', key('versions', name))
call('ZREM', key('workflows'), name)
