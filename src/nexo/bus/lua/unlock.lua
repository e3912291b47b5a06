-- KEYS: a lock. ARGV: whose it must be to be removed.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
