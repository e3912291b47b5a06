-- Create a consumer group, unless it exists. KEYS: stream. ARGV: consumer group.
redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
return 1
