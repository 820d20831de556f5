#!lua flags=allow-oom
-- Puts tasks back that were leased and of which nobody has heard, in front of their line. What was withdrawn meanwhile stays
-- leased, to lapse without a word.
-- arguments  prefix, incarnation, line, queue, then the tokens
-- returns    how many are back

local line, queue = argument(), argument()
local leases, waiting, bell = key('leases', line), key('line', line), key('bell', queue)
if not (may_be('list', waiting) and may_be('list', bell) and may_be('zset', leases)) then return 0 end
local count = 0
for i = #ARGV, at + 1, -1 do
  local token = ARGV[i]
  if call('SISMEMBER', key('revoked'), token) == 0 and call('ZREM', leases, token) == 1 then
    call('LPUSH', waiting, token)
    count = count + 1
  end
end
-- One for each: a worker that has room for one takes one.
for _ = 1, math.min(count, 100) do call('RPUSH', bell, '') end
return count
