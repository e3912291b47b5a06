-- One instance's entry for one user: written, or removed when there are no platforms.
-- KEYS: who is where, who watches (both of one user). ARGV: instance, ttl in ms, version, platforms, age in µs.
-- A later write of the same instance is never undone by an earlier one that arrives late (version).
-- Returns: a number that grows with every call, the entry that was there before ('' for none), the live
-- entries of other instances, the instances that watch.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)

local mine, others = '', {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if all[i] == ARGV[1] then
    mine = all[i + 1]
  elseif tonumber(string.match(all[i + 1], '^(%d+):')) > now_ms then
    others[#others + 1] = all[i]
    others[#others + 1] = all[i + 1]
  else
    redis.call('HDEL', KEYS[1], all[i])
  end
end

local version = mine ~= '' and tonumber(string.match(mine, '^%d+:(%d+):')) or 0
if version <= tonumber(ARGV[3]) then
  if ARGV[4] == '' then
    redis.call('HDEL', KEYS[1], ARGV[1])
  else
    local expires = string.format('%.0f', now_ms + tonumber(ARGV[2]))
    redis.call('HSET', KEYS[1], ARGV[1], expires .. ':' .. ARGV[3] .. ':' .. ARGV[4])
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
end

local watchers = {}
all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  if tonumber(all[i + 1]) > now_ms then
    watchers[#watchers + 1] = all[i]
  else
    redis.call('HDEL', KEYS[2], all[i])
  end
end
return { string.format('%.0f', now_us - tonumber(ARGV[5])), mine, others, watchers }
