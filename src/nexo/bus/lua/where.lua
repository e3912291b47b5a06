-- KEYS: who is where, one key per user. Returns for each the live entries: instance, entry, instance, entry, …
local time = redis.call('TIME')
local now_ms = math.floor((time[1] * 1000000 + time[2]) / 1000)
local found = {}
for k = 1, #KEYS do
  local live = {}
  local all = redis.call('HGETALL', KEYS[k])
  for i = 1, #all, 2 do
    if tonumber(string.match(all[i + 1], '^(%d+):')) > now_ms then
      live[#live + 1] = all[i]
      live[#live + 1] = all[i + 1]
    end
  end
  found[k] = live
end
return found
