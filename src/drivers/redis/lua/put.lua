#!lua flags=allow-oom
-- Puts records, all or none. Full memory does not stop it, or no result could be handed in; the script is loaded once
-- more without the flag for what may be refused.
-- arguments  prefix, incarnation, then for each: scope, hash, text
-- returns    nothing

while at < #ARGV do
  local scope, hash = argument(), argument()
  call('HSETNX', key('records', scope), hash, argument())
end
