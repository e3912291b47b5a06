-- Return one token of a bucket. KEYS: the bucket. ARGV: µs per token.
local full_at = tonumber(redis.call('GET', KEYS[1]) or '0')
if full_at > 0 then
  redis.call('SET', KEYS[1], string.format('%.0f', full_at - tonumber(ARGV[1])), 'KEEPTTL')
end
return 0
