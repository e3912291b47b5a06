-- KEYS: stream. ARGV: the consumer group that takes from it, which may be there already.
redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
return 1
