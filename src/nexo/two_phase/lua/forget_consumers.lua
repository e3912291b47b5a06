-- Consumers of instances that ended long ago, and have nothing left to finish, are forgotten.
-- KEYS: stream. ARGV: consumer group, after how many ms of silence. Returns: how many.
local found = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
local count = 0
if found.err then
  return count
end
for _, fields in ipairs(found) do
  local consumer = {}
  for i = 1, #fields, 2 do
    consumer[fields[i]] = fields[i + 1]
  end
  if consumer.pending == 0 and consumer.idle > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer.name)
    count = count + 1
  end
end
return count
