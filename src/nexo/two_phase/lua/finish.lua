-- Entries have their outcome: they leave the stream, and their claims hold the outcome from now on.
-- KEYS: the entries' stream, unsaved messages by conversation, the claims.
-- ARGV: consumer group, how long a claim is kept in ms; then per entry: its place in the stream, conversation,
-- server_msg_id, saved or refused, the refusal. Returns: the address that waits for each outcome, or ''.
local stream, unsaved = KEYS[1], KEYS[2]
local group, ttl = ARGV[1], ARGV[2]
local addresses = {}
for i = 1, #KEYS - 2 do
  local at = 5 * i - 2
  local entry, conversation, id = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local key = KEYS[i + 2]
  redis.call('XACK', stream, group, entry)
  if redis.call('XDEL', stream, entry) == 1 then
    if redis.call('HINCRBY', unsaved, conversation, -1) <= 0 then
      redis.call('HDEL', unsaved, conversation)
    end
  end
  local claim = redis.call('HMGET', key, 'id', 'address')
  if claim[1] == id then
    redis.call('HSET', key, 'state', ARGV[at + 3], 'refusal', ARGV[at + 4])
    redis.call('PEXPIRE', key, ttl)
    addresses[i] = claim[2] or ''
  else
    addresses[i] = ''
  end
end
return addresses
