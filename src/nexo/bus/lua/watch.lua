-- KEYS: who watches, who is where (both of one user). ARGV: instance, ttl in ms (0 stops watching).
-- Returns the live entries of the user, read after the watch is in place.
local time = redis.call('TIME')
local now_ms = math.floor((time[1] * 1000000 + time[2]) / 1000)
if ARGV[2] == '0' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  return {}
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now_ms + tonumber(ARGV[2])))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local live = {}
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  if tonumber(string.match(all[i + 1], '^(%d+):')) > now_ms then
    live[#live + 1] = all[i]
    live[#live + 1] = all[i + 1]
  end
end
return live
