#!lua
-- Makes the store where there is none, and says what is there. Refused when Redis is full.
-- arguments  prefix, new incarnation or '' to make none, partitions, format
-- returns    {incarnation, partitions, format}; all nil where there is none, the last in a store from before there was one

local store = ARGV[1] .. ':store'
if ARGV[2] ~= '' and redis.call('EXISTS', store) == 0 then
  redis.call('HSET', store, 'incarnation', ARGV[2], 'partitions', ARGV[3], 'format', ARGV[4])
end
return redis.call('HMGET', store, 'incarnation', 'partitions', 'format')
