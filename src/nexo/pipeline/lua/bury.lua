-- An entry that cannot be saved goes to the dead letters, with the reason.
-- KEYS: dead letters. ARGV: how many of them are kept, then the fields.
return redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', unpack(ARGV, 2))
