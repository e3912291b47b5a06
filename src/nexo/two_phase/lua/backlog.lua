-- What waits in a shard. KEYS: accepted stream, to_save stream, dead letters.
-- Returns: how many entries each has, the age in ms of the oldest entry that is not saved, and its id.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest, id = 0, ''
for i = 1, 2 do
  local first = redis.call('XRANGE', KEYS[i], '-', '+', 'COUNT', 1)[1]
  if first then
    local age = math.max(0, now_ms - tonumber(string.match(first[1], '^%d+')))
    if id == '' or age > oldest then
      oldest, id = age, first[1]
    end
  end
end
return { redis.call('XLEN', KEYS[1]), redis.call('XLEN', KEYS[2]), redis.call('XLEN', KEYS[3]), oldest, id }
