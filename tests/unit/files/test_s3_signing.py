"""Signatures of requests to S3, compared with the example that the specification of S3 publishes."""

from __future__ import annotations

from datetime import UTC, datetime

from nexo.files.s3_signing import EMPTY_SHA256, encoded, query_text, signed_headers

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
AT = datetime(2013, 5, 24, tzinfo=UTC)
HOST = "examplebucket.s3.amazonaws.com"


def signature(method: str, path: str, query: dict[str, str], **headers: str) -> str:
    made = signed_headers(
        method, HOST, path, query, EMPTY_SHA256, AT, region="us-east-1", key=KEY, secret=SECRET, headers=headers
    )
    return made["authorization"].rpartition("Signature=")[2]


def test_a_part_of_an_object_is_asked_for_with_the_published_signature() -> None:
    found = signature("GET", "/test.txt", {}, range="bytes=0-9")
    assert found == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"


def test_a_list_is_asked_for_with_the_published_signature() -> None:
    found = signature("GET", "/", {"max-keys": "2", "prefix": "J"})
    assert found == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"


def test_names_are_encoded_as_they_are_signed() -> None:
    assert encoded("a b/ü~", keeps_slashes=True) == "a%20b/%C3%BC~"
    assert query_text({"b": "x/y", "a": "+"}) == "a=%2B&b=x%2Fy"
