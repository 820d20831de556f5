#!lua flags=allow-oom
-- Takes a partition: epoch + 1 and a new nonce. With a fence: only if that is the present one (reacquire).
-- arguments  prefix, incarnation, partition, owner, leaseMs, new nonce [, incarnation, epoch, nonce]
-- returns    {'held', owner} or {'acquired', incarnation, epoch, seq, lastTimeMs, storeTimeMs, strikes, suspect?}

local partition, owner, lease, nonce = argument(), argument(), tonumber(argument()), argument()
local incarnation, epoch, old_nonce = argument(), argument(), argument()
local partition_key = key('partition', partition)
local known = call('HMGET', partition_key, 'owner', 'until', 'nonce', 'clean', 'strikes', 'suspect')
local now = lease_ms()
local is_free = not known[3] or tonumber(known[2]) <= now
local strikes, suspect = tonumber(known[5] or 0), known[6]

if incarnation then
  -- The owner is alive: an outcome it could not learn is no strike.
  is_free = is_holder(partition, incarnation, epoch, old_nonce)
  owner = known[1]
elseif known[4] == '0' then
  strikes = strikes + 1
else
  strikes, suspect = 0, false
end
if not is_free then return { 'held', known[1] or '' } end

local next_epoch = call('HINCRBY', partition_key, 'epoch', 1)
call('HSET', partition_key, 'nonce', nonce, 'owner', owner, 'until', now + lease, 'clean', 0, 'strikes', strikes)
if not suspect then call('HDEL', partition_key, 'suspect') end
local rest = call('HMGET', partition_key, 'seq', 'time')
return { 'acquired', ARGV[2], next_epoch, rest[1] or '0', rest[2] or '0', wall_ms(), strikes, suspect }
