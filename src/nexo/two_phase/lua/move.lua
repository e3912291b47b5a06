-- Move delivered entries to the stream of entries to be saved, each once, in order, and only by the consumer that has
-- taken them: not by an earlier owner of the shard.
-- The consumer that moves them saves them too: it takes the new entries of the other stream in the same step.
-- KEYS: accepted stream, to_save stream.
-- ARGV: consumer groups of both, consumer, how many to take; then per entry: its place in the stream, how many words
-- it has, those words. Returns: what was taken.
local at = 5
while at <= #ARGV do
  local entry, words = ARGV[at], tonumber(ARGV[at + 1])
  local first = at + 2
  at = first + words
  if #redis.call('XPENDING', KEYS[1], ARGV[1], entry, entry, 1, ARGV[3]) == 1 then
    redis.call('XACK', KEYS[1], ARGV[1], entry)
    if redis.call('XDEL', KEYS[1], entry) == 1 then
      redis.call('XADD', KEYS[2], '*', unpack(ARGV, first, at - 1))
    end
  end
end
local found = redis.pcall('XREADGROUP', 'GROUP', ARGV[2], ARGV[3], 'COUNT', ARGV[4], 'STREAMS', KEYS[2], '>')
if found and found.err then
  return found
end
return found and found[1][2] or {}
