-- Take a message into its shard, once.
-- KEYS: claim, accepted stream, to_save stream, unsaved messages by conversation.
-- ARGV: request hash, server_msg_id, conversation, who is to be told, how many may wait, how long a claim is
-- kept in ms, then the fields of the entry.
-- Returns: what became of it, and with that the server_msg_id and the final refusal.
local claim = redis.call('HMGET', KEYS[1], 'hash', 'id', 'state', 'refusal')
if claim[1] then
  if claim[1] ~= ARGV[1] then
    return { 'reused' }
  end
  if claim[3] == 'accepted' then
    -- a retry, perhaps on another connection: the outcome goes to whoever asked last
    redis.call('HSET', KEYS[1], 'address', ARGV[4])
  end
  return { claim[3], claim[2], claim[4] or '' }
end
if redis.call('XLEN', KEYS[2]) + redis.call('XLEN', KEYS[3]) >= tonumber(ARGV[5]) then
  -- only what has nothing before it may go another way
  if redis.call('HEXISTS', KEYS[4], ARGV[3]) == 1 then
    return { 'busy' }
  end
  return { 'direct' }
end
redis.call('HSET', KEYS[1], 'hash', ARGV[1], 'id', ARGV[2], 'state', 'accepted', 'address', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 7))
redis.call('HINCRBY', KEYS[4], ARGV[3], 1)
return { 'accepted', ARGV[2], '' }
