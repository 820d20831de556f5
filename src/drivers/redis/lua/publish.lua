#!lua flags=allow-oom
-- arguments  prefix, name, hash
-- returns    the version of this content under this name: the same again, or the next number

local published, hash = key('published', argument()), argument()
redis.call('HSETNX', published, hash, redis.call('HLEN', published) + 1)
return redis.call('HGET', published, hash)
