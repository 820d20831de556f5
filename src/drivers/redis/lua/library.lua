-- What the scripts share; put in front of each of them. Every script has the prefix of all keys as its first argument.
-- Keys are made here and not declared: the profile is one primary, never a cluster.

local prefix = ARGV[1]
local at = 1

local function argument()
  at = at + 1
  return ARGV[at]
end

local function key(kind, name)
  if name == nil then return prefix .. ':' .. kind end
  return prefix .. ':' .. kind .. ':' .. name
end

local function wall_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The clock for leases: the wall clock, plus what it was ever set back. What it has seen is written down ten times a
-- second and not at every look: with a sync for every write, a look that finds nothing would cost as much as a commit.
local function lease_ms()
  local now = wall_ms()
  local known = redis.call('HMGET', key('clock'), 'wall', 'offset')
  local wall, offset = tonumber(known[1] or 0), tonumber(known[2] or 0)
  if now < wall then
    offset = offset + wall - now
    redis.call('HSET', key('clock'), 'wall', now, 'offset', offset)
  elseif now > wall + 100 then
    redis.call('HSET', key('clock'), 'wall', now)
  end
  return now + offset
end

local function is_holder(partition, incarnation, epoch, nonce)
  if redis.call('HGET', key('store'), 'incarnation') ~= incarnation then return false end
  local known = redis.call('HMGET', key('partition', partition), 'epoch', 'nonce')
  return known[1] == epoch and known[2] == nonce
end

local function post(partition, text)
  redis.call('XADD', key('inbox', partition), '*', 'text', text)
end

-- A stored task is `<order> <names as JSON>\n<text>`; its order is the driver's name for it.
local function is_leased(token, ref)
  local task = redis.call('HGET', key('tasks'), token)
  if not task or string.match(task, '^(%d+) ') ~= ref then return false end
  return redis.call('ZSCORE', key('leases'), token) ~= false
end

local function remove_lease(token)
  redis.call('HDEL', key('tasks'), token)
  redis.call('ZREM', key('leases'), token)
  return redis.call('SREM', key('revoked'), token) == 1
end
