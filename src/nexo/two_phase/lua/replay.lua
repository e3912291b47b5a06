-- A dead letter is tried again: to the end of its shard, once.
-- KEYS: dead letters, accepted stream, unsaved messages by conversation. ARGV: entry, conversation, then the fields.
if redis.call('XDEL', KEYS[1], ARGV[1]) == 0 then
  return ''
end
redis.call('HINCRBY', KEYS[3], ARGV[2], 1)
return redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
