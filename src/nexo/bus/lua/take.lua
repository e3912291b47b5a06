-- One token of a bucket. KEYS: the bucket. ARGV: µs per token, µs for a full bucket.
-- Of a bucket only the moment is kept at which it will be full again. Returns 0, or the ms to wait.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, depth = tonumber(ARGV[1]), tonumber(ARGV[2])
local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local wait = full_at + interval - now - depth
if wait > 0 then
  return math.ceil(wait / 1000)
end
full_at = full_at + interval
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000) + 1)
return 0
