-- An entry was delivered and goes on to be saved: from one stream into the other, once.
-- KEYS: accepted stream, to_save stream. ARGV: consumer group, entry, then the fields.
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
if redis.call('XDEL', KEYS[1], ARGV[2]) == 1 then
  redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
end
return 1
