-- KEYS: instances by the time of their last sign of life, how many users each has, how old its last commit was.
-- ARGV: instance, its users, after how many ms an instance is forgotten, ms since it committed something (-1: it
-- serves no clients).
-- Returns: 1 when this instance was known (what Redis held is still there), then for every instance that is
-- alive its name, the age of its sign of life in ms, its users, and ms since its last commit as of that sign.
local time = redis.call('TIME')
local now_ms = math.floor((time[1] * 1000000 + time[2]) / 1000)
local known = redis.call('ZSCORE', KEYS[1], ARGV[1]) and 1 or 0
redis.call('ZADD', KEYS[1], now_ms, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[4])
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_ms - tonumber(ARGV[3]))) do
  redis.call('ZREM', KEYS[1], name)
  redis.call('HDEL', KEYS[2], name)
  redis.call('HDEL', KEYS[3], name)
end
for _, key in ipairs(KEYS) do
  redis.call('PEXPIRE', key, 3600000)
end
local found = { known }
local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for i = 1, #all, 2 do
  found[#found + 1] = all[i]
  found[#found + 1] = now_ms - tonumber(all[i + 1])
  found[#found + 1] = tonumber(redis.call('HGET', KEYS[2], all[i]) or '0')
  found[#found + 1] = tonumber(redis.call('HGET', KEYS[3], all[i]) or '-1')
end
return found
