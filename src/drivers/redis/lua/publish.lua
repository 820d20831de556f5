#!lua flags=allow-oom
-- arguments  prefix, incarnation, name, hash
-- returns    the version of this content under this name: the same again, or the next number

local name, hash = argument(), argument()
local numbers = key('published', name)
call('HSETNX', numbers, hash, call('HLEN', numbers) + 1)
local version = call('HGET', numbers, hash)
call('ZADD', key('versions', name), version, hash)
call('ZADD', key('workflows'), 0, name)
return version
