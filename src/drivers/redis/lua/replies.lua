#!lua flags=allow-oom
-- arguments  prefix, incarnation, process, limit
-- returns    the oldest replies for a process, which are gone with this

return call('LPOP', key('replies', argument()), argument()) or {}
