-- An entry has its outcome: it leaves the stream, and its claim tells the outcome from now on.
-- KEYS: claim, the entry's stream, unsaved messages by conversation.
-- ARGV: consumer group, entry, conversation, server_msg_id, saved or refused, the refusal, how long the claim is
-- kept in ms. Returns: who is to be told ('' for nobody).
redis.call('XACK', KEYS[2], ARGV[1], ARGV[2])
if redis.call('XDEL', KEYS[2], ARGV[2]) == 1 then
  if redis.call('HINCRBY', KEYS[3], ARGV[3], -1) <= 0 then
    redis.call('HDEL', KEYS[3], ARGV[3])
  end
end
local claim = redis.call('HMGET', KEYS[1], 'id', 'address')
if claim[1] ~= ARGV[4] then
  return ''
end
redis.call('HSET', KEYS[1], 'state', ARGV[5], 'refusal', ARGV[6])
redis.call('PEXPIRE', KEYS[1], ARGV[7])
return claim[2] or ''
