"""Uses the client that was generated from the OpenAPI document, as a product's backend would: users, a token, messages
by an acting key and by the user's own token, events, a refusal. Arguments: the address of a server and a key."""

import sys

from nexo_generated import AuthenticatedClient
from nexo_generated.api.msg import msg_pull, msg_send
from nexo_generated.api.server import server_events, server_tokens, server_users
from nexo_generated.models import (
    ErrorBody,
    MsgPullResponse200,
    MsgSendResponse200,
    PutUser,
    PutUsersRequest,
    SendRequest,
    ServerEventsResponse200,
    ServerTokensResponse200,
    ServerUsersResponse200,
    TokensRequest,
)

address, key = sys.argv[1:]
backend = AuthenticatedClient(base_url=address, token=key, raise_on_unexpected_status=True)
users = PutUsersRequest([PutUser("gen.ann", nickname="Ann"), PutUser("gen.ben")])
put = server_users.sync(client=backend, body=users)
assert isinstance(put, ServerUsersResponse200), put

begin = server_events.sync(client=backend)
assert isinstance(begin, ServerEventsResponse200), begin

acting = AuthenticatedClient(base_url=address, token=key, headers={"Nexo-User": "gen.ann"})
sent = msg_send.sync(client=acting, body=SendRequest("c1", "hello", recv_id="gen.ben"))
assert isinstance(sent, MsgSendResponse200), sent
assert sent.data.seq == 1

token = server_tokens.sync(client=backend, body=TokensRequest("gen.ben"))
assert isinstance(token, ServerTokensResponse200), token
ben = AuthenticatedClient(base_url=address, token=token.data.access_token)
pulled = msg_pull.sync(client=ben, conversation_id=sent.data.conversation_id, begin_seq=1)
assert isinstance(pulled, MsgPullResponse200), pulled
assert [message.server_msg_id for message in pulled.data.messages] == [sent.data.server_msg_id]

events = server_events.sync(
    client=backend, cursor=begin.data.next_cursor, types=["message.saved", "message.recalled"], wait_s=10
)
assert isinstance(events, ServerEventsResponse200), events
assert [event.type_ for event in events.data.events] == ["message.saved"]
assert events.data.events[0].data.additional_properties["content"] == "hello"

refused = msg_send.sync(client=ben, body=SendRequest("c2", "", recv_id="gen.ann"))
assert isinstance(refused, ErrorBody), refused
print("WALKED", refused.err_msg)
