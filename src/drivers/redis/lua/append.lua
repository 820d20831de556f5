#!lua flags=allow-oom
-- Appends to inboxes, in order. Starts are refused where the inbox is full; the script is loaded once more without the
-- flag for calls that have starts, so that a full Redis refuses those as well.
-- arguments  prefix, incarnation, most messages in an inbox, then for each: partition, '1' for a start, text
-- returns    for each 1 if it was appended, else 0

local most = tonumber(argument())
local outcomes, lengths = {}, {}
while at < #ARGV do
  local partition, is_start, text = argument(), argument(), argument()
  if is_start == '1' and not lengths[partition] then lengths[partition] = call('XLEN', key('inbox', partition)) end
  if is_start == '1' and lengths[partition] >= most then
    outcomes[#outcomes + 1] = 0
  else
    post(partition, text)
    if lengths[partition] then lengths[partition] = lengths[partition] + 1 end
    outcomes[#outcomes + 1] = 1
  end
end
return outcomes
