-- Take what one connection sends to one conversation into its shard, in order and all at once: between two of
-- them nothing changes, so none can overtake another by being saved directly.
-- KEYS: accepted stream, to_save stream, unsaved messages by conversation, the claims of the messages, and, when
-- ARGV[5] is 1, the claim of what the same connection has accepted there last and does not know to be saved.
-- ARGV: conversation, address of the sender, how many may wait, how long a claim is kept in ms, whether there is such an
-- earlier one; then per message: request hash, server_msg_id, how many words its entry has, those words.
-- Returns per message: its state, the server_msg_id and the final refusal.
local accepted, to_save, unsaved = KEYS[1], KEYS[2], KEYS[3]
local conversation, address, most, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local has_earlier = ARGV[5] == '1'
local count = #KEYS - 3
if has_earlier then
  count = count - 1
end
local waiting = redis.call('XLEN', accepted) + redis.call('XLEN', to_save)
if waiting == 0 then
  redis.call('DEL', unsaved)
end

local answers = {}
if has_earlier then
  local state = redis.call('HGET', KEYS[#KEYS], 'state')
  if not state or (state == 'accepted' and waiting == 0) then
    -- it was lost, and has to be accepted again before these
    for i = 1, count do
      answers[i] = { 'lost' }
    end
    return answers
  end
end

local is_direct = false
local at = 6
for i = 1, count do
  local hash, id, words = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local first = at + 3
  at = first + words
  local key = KEYS[3 + i]
  local claim = redis.call('HMGET', key, 'hash', 'id', 'state', 'refusal')
  if claim[1] and claim[1] ~= hash then
    answers[i] = { 'reused' }
  elseif claim[1] and claim[3] == 'accepted' then
    -- a retry, perhaps on another connection: the outcome goes to the last address
    redis.call('HSET', key, 'address', address)
    answers[i] = { 'known', claim[2], '' }
  elseif claim[1] then
    answers[i] = { claim[3], claim[2], claim[4] or '' }
  elseif is_direct then
    answers[i] = { 'direct' }
  elseif waiting >= most then
    -- only a message without unsaved ones before it may be saved directly
    if redis.call('HEXISTS', unsaved, conversation) == 1 then
      answers[i] = { 'busy' }
    else
      is_direct = true
      answers[i] = { 'direct' }
    end
  else
    redis.call('HSET', key, 'hash', hash, 'id', id, 'state', 'accepted', 'address', address)
    redis.call('PEXPIRE', key, ttl)
    redis.call('XADD', accepted, '*', unpack(ARGV, first, first + words - 1))
    redis.call('HINCRBY', unsaved, conversation, 1)
    waiting = waiting + 1
    answers[i] = { 'accepted', id, '' }
  end
end
return answers
