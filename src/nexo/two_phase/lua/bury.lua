-- An entry that cannot be saved goes to the dead letters with the reason, once, and its claim holds the refusal.
-- KEYS: the entry's stream, dead letters, unsaved messages by conversation, its claim (when it could be read).
-- ARGV: consumer group, entry, conversation ('' when it is unknown), server_msg_id, the refusal, how long the claim
-- is kept in ms, how many dead letters are kept, then the fields. Returns: the address that waits for the outcome, or ''.
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
if redis.call('XDEL', KEYS[1], ARGV[2]) == 1 then
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[7], '*', unpack(ARGV, 8))
  if ARGV[3] ~= '' and redis.call('HINCRBY', KEYS[3], ARGV[3], -1) <= 0 then
    redis.call('HDEL', KEYS[3], ARGV[3])
  end
end
if not KEYS[4] then
  return ''
end
local claim = redis.call('HMGET', KEYS[4], 'id', 'address')
if claim[1] ~= ARGV[4] then
  return ''
end
redis.call('HSET', KEYS[4], 'state', 'refused', 'refusal', ARGV[5])
redis.call('PEXPIRE', KEYS[4], ARGV[6])
return claim[2] or ''
