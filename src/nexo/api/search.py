"""Handlers: searching messages, lists of media."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from nexo.api.requests import NUMBER_MAX, ApiRequest, ConversationId, Cursor, Seq, UserId, form, given
from nexo.api.route import Caller, Services
from nexo.api.shapes import NextCursor
from nexo.core.search_index import SearchFilter
from nexo.core.search_text import KIND_NAMES
from nexo.core.shapes import MessageShape, message_shape

SearchLimit = Annotated[int, Meta(description="At most 100, 20 when absent.")]
MediaLimit = Annotated[int, Meta(description="At most 200, 50 when absent.")]
_QUERY = (
    "Words, all of which a message has: each by its beginning; in Chinese, Japanese and Korean any part. What stands "
    "in quotation marks is found exactly. Case and accents do not matter."
)


class SearchMessages(ApiRequest, frozen=True):
    q: Annotated[str, form(minLength=1, maxLength=256, description=_QUERY)]
    conversation_id: Annotated[ConversationId, Meta(description="None: all of yours.")] | UnsetType = UNSET
    sender_id: UserId | UnsetType = UNSET
    msg_type: Annotated[int, Meta(ge=0, le=NUMBER_MAX)] | UnsetType = UNSET
    after: Annotated[Seq, Meta(description="Sent at this time or later, in milliseconds.")] | UnsetType = UNSET
    before: Annotated[Seq, Meta(description="Sent before this time.")] | UnsetType = UNSET
    limit: SearchLimit | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET


class MediaRequest(ApiRequest, frozen=True):
    conversation_id: ConversationId
    kind: Annotated[str, form(enum=list(KIND_NAMES), description="`link`: texts with an address.")]
    before_seq: Seq | UnsetType = UNSET
    limit: MediaLimit | UnsetType = UNSET


class SearchResult(Struct):
    """`snippet` is a part of the text, or of name and caption of a file; `ranges` are the places in it that match, as
    pairs of Unicode characters from its beginning, the second excluded."""

    message: MessageShape
    snippet: str
    ranges: list[list[int]]


class SearchReply(Struct):
    """Newest first. A page may have few results, or none, and more behind it: see `has_more`."""

    results: list[SearchResult]
    next_cursor: NextCursor
    has_more: bool


class MediaReply(Struct):
    """Newest first. `next_seq` is the `before_seq` of the next page."""

    messages: list[MessageShape]
    next_seq: int
    has_more: bool


async def search(services: Services, caller: Caller, request: SearchMessages) -> SearchReply:
    wanted = SearchFilter(
        given(request.sender_id), given(request.msg_type), given(request.after), given(request.before)
    )
    page = await services.search.search(
        caller.user_id, request.q, wanted, given(request.conversation_id), given(request.limit), given(request.cursor)
    )
    results = [
        SearchResult(message_shape(hit.message), hit.snippet[0], [list(pair) for pair in hit.snippet[1]])
        for hit in page.hits
    ]
    return SearchReply(results, page.next_cursor, page.has_more)


async def media(services: Services, caller: Caller, request: MediaRequest) -> MediaReply:
    page = await services.search.media(
        caller.user_id, request.conversation_id, request.kind, given(request.before_seq), given(request.limit)
    )
    return MediaReply([message_shape(message) for message in page.messages], page.next_seq, page.has_more)
