#!lua flags=no-writes
-- Reads from several inboxes.
-- arguments  prefix, incarnation, then for each: partition, where to begin, limit
-- returns    for each that has something: its number in the order given, from 1, and its entries

local answer = {}
for number = 1, (#ARGV - at) / 3 do
  local entries = redis.call('XRANGE', key('inbox', argument()), argument(), '+', 'COUNT', argument())
  if #entries > 0 then answer[#answer + 1] = { number, entries } end
end
return answer
