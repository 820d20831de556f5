#!lua flags=no-writes
-- The names that are published, in the order of their bytes, each with its highest version.
-- arguments  prefix, incarnation, limit [, the name behind which to begin]
-- returns    for each: name, hash, version

local limit, after = argument(), argument()
local names = call('ZRANGE', key('workflows'), after and '(' .. after or '-', '+', 'BYLEX', 'LIMIT', 0, limit)
local answer = {}
for i = 1, #names do
  local newest = call('ZRANGE', key('versions', names[i]), -1, -1, 'WITHSCORES')
  answer[3 * i - 2] = names[i]
  answer[3 * i - 1] = newest[1]
  answer[3 * i] = newest[2]
end
return answer
