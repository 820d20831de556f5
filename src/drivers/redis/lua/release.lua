#!lua flags=allow-oom
-- Gives a partition back. Without a nonce nothing of the tenure that ends here fits any more.
-- arguments  prefix, incarnation, partition, incarnation, epoch, nonce
-- returns    nothing

local partition, incarnation, epoch, nonce = argument(), argument(), argument(), argument()
if is_holder(partition, incarnation, epoch, nonce) then
  call('HDEL', key('partition', partition), 'nonce')
  call('HSET', key('partition', partition), 'owner', '', 'until', 0, 'clean', 1)
end
