-- Entries were delivered and go on to be saved: from one stream into the other, each once, all in their order.
-- KEYS: accepted stream, to_save stream.
-- ARGV: consumer group, then per entry: its place in the stream, how many words it has, those words.
local at = 2
while at <= #ARGV do
  local entry, words = ARGV[at], tonumber(ARGV[at + 1])
  local first = at + 2
  at = first + words
  redis.call('XACK', KEYS[1], ARGV[1], entry)
  if redis.call('XDEL', KEYS[1], entry) == 1 then
    redis.call('XADD', KEYS[2], '*', unpack(ARGV, first, at - 1))
  end
end
return 1
