-- The workers that save at present: adds or removes this one, and forgets silent ones.
-- KEYS: workers by the time of their last call. ARGV: this worker, after how many ms one is forgotten, 1 to stay.
-- Returns: how many there are.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
if ARGV[3] == '1' then
  redis.call('ZADD', KEYS[1], now, ARGV[1])
else
  redis.call('ZREM', KEYS[1], ARGV[1])
end
return redis.call('ZCARD', KEYS[1])
