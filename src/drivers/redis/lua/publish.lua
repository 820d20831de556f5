#!lua flags=allow-oom
-- arguments  prefix, incarnation, name, hash
-- returns    the version of this content under this name: the same again, or the next number

local name, hash = argument(), argument()
local numbers = key('published', name)
redis.call('HSETNX', numbers, hash, redis.call('HLEN', numbers) + 1)
local version = redis.call('HGET', numbers, hash)
redis.call('ZADD', key('versions', name), version, hash)
redis.call('ZADD', key('workflows'), 0, name)
return version
