"""The dialect of OpenIM clients: binary frames with protobuf inside, as JSON or as Go's gob."""
