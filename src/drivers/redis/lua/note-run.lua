#!lua flags=allow-oom
-- Notes that the AOF of this run of the server is whole. A full Redis takes it too.
-- arguments  key, run id
-- returns    nothing

redis.call('SET', ARGV[1], ARGV[2])
