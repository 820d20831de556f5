#!lua flags=allow-oom
-- Removes tasks whose lease has still run out and posts the message about each; a revoked one goes without a word.
-- arguments  prefix, then for each: ref, token, partition, text
-- returns    how many it removed

local now = lease_ms()
local count = 0
while at < #ARGV do
  local ref, token, partition, text = argument(), argument(), argument(), argument()
  -- It may have been settled, or its lease made longer, since it was found.
  if is_leased(token, ref) and tonumber(redis.call('ZSCORE', key('leases'), token)) <= now then
    local was_revoked = remove_lease(token)
    if not was_revoked then post(partition, text) end
    count = count + 1
  end
end
return count
