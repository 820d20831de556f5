#!lua
-- Makes the store where there is none, and says what is there. Refused when Redis is full.
-- arguments  prefix, new incarnation, partitions, format
-- returns    {incarnation, partitions, format}; the last is nil in a store from before there was one

local store = ARGV[1] .. ':store'
if redis.call('EXISTS', store) == 0 then
  redis.call('HSET', store, 'incarnation', ARGV[2], 'partitions', ARGV[3], 'format', ARGV[4])
end
return redis.call('HMGET', store, 'incarnation', 'partitions', 'format')
