#!lua flags=allow-oom
-- Brings a store of format 1 up to date, in steps: `begin` shuts out whoever knows no other format, and whoever would use it
-- before it is done; then each key that is laid out otherwise now, again and again if need be; `end` opens it.
-- arguments  prefix, step, then: of `begin` the format; of `entities`, `journals` and `lines` names without their prefix
-- returns    nothing

local call = redis.call
local prefix, step = ARGV[1], ARGV[2]
local store = prefix .. ':store'
local AGE = 68719476736

local steps = {}

steps['begin'] = function(format)
  local incarnation = call('HGET', store, 'incarnation')
  if call('HEXISTS', store, 'id') == 1 or call('HEXISTS', store, 'upgrading') == 1 then return end
  call('HSET', store, 'upgrading', incarnation, 'incarnation', 'see id', 'format', format)
end

-- One hash for each became one for all: header, place and snapshot.
steps['entities'] = function(name)
  local old = prefix .. ':entity:' .. name
  local fields = call('HMGET', old, 'header', 'place', 'snapshot')
  for i, hash in ipairs({ ':headers', ':places', ':snapshots' }) do
    if fields[i] then call('HSETNX', prefix .. hash, name, fields[i]) end
  end
  call('UNLINK', old)
end

-- The version stood in the last record alone.
steps['journals'] = function(name)
  local last = call('LINDEX', prefix .. ':journal:' .. name, -1)
  local version, count = string.match(last or '', '^(%d+) (%d+) ')
  if version then call('HSETNX', prefix .. ':journals', name, string.format('%.0f', version + count - 1)) end
end

-- A stream became a list of tokens. Its pending entries were the leases, with their ends moved back by an age.
steps['lines'] = function(line)
  local old, tasks = prefix .. ':line:' .. line, prefix .. ':tasks'
  if call('TYPE', old).ok ~= 'stream' then return end
  local entries = call('XRANGE', old, '-', '+')
  local ends = {}
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local pending = redis.pcall('XPENDING', old, 'workers', '-', '+', #entries + 1)
  for _, entry in ipairs(pending.err and {} or pending) do ends[entry[1]] = now - entry[3] + AGE end
  call('DEL', old)
  for _, entry in ipairs(entries) do
    local id, token, text = entry[1], entry[2][2], entry[2][4]
    local place = call('HGET', tasks, token)
    if place == id .. ' ' .. line or place == '!' .. id .. ' ' .. line then
      local since = string.match(id, '^%d+')
      call('HSET', tasks, token, (string.gsub(text, '%]\n', ',' .. since .. ']\n', 1)))
      if string.sub(place, 1, 1) == '!' then call('SADD', prefix .. ':revoked', token) end
      if ends[id] then
        call('ZADD', prefix .. ':leases:' .. line, string.format('%.0f', ends[id]), token)
      else
        call('RPUSH', old, token)
      end
    end
  end
end

steps['end'] = function()
  local incarnation = call('HGET', store, 'upgrading')
  if not incarnation then return end
  call('HSET', store, 'id', incarnation)
  call('HDEL', store, 'upgrading')
end

if #ARGV == 2 then
  steps[step]()
else
  for i = 3, #ARGV do steps[step](ARGV[i]) end
end
