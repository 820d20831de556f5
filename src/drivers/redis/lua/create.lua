#!lua
-- Makes the store where there is none, and says what is there. Refused when Redis is full.
-- The field `incarnation` is what releases that know format 1 alone compare, and fits none of them: they write no more.
-- arguments  prefix, new incarnation or '' to make none, partitions, format
-- returns    {incarnation, partitions, format, the incarnation of format 1}; all nil where there is none, the format in a store
--            from before there was one

local store = ARGV[1] .. ':store'
if ARGV[2] ~= '' and redis.call('EXISTS', store) == 0 then
  local fields = { 'id', ARGV[2], 'incarnation', 'see id', 'partitions', ARGV[3], 'format', ARGV[4] }
  redis.call('HSET', store, unpack(fields))
end
return redis.call('HMGET', store, 'id', 'partitions', 'format', 'incarnation')
