"""Push services on loopback, over TLS: HTTP/1.1 and HTTP/2, which note every request and answer as a test wants."""

from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded

from nexo.outgoing import http2_client, http_client


class ServiceRequest(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class ServiceAnswer(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


Answering = Callable[[ServiceRequest], ServiceAnswer]


class PushServiceStub:
    """`decide` returns the answer to a request."""

    def __init__(self) -> None:
        self.requests: list[ServiceRequest] = []
        self.decide: Answering = lambda request: ServiceAnswer(201)
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def take(self, request: ServiceRequest) -> ServiceAnswer:
        self.requests.append(request)
        return self.decide(request)


class _OneStub(asyncio.Protocol):
    """A connection in HTTP/1.1."""

    def __init__(self, stub: PushServiceStub) -> None:
        self._stub = stub
        self._data = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if not end or len(body) < int(headers["content-length"]):
            return
        self._data = b""
        method, path, _ = first.split(" ")
        answer = self._stub.take(ServiceRequest(method, path, headers, body))
        more = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
        head_text = f"HTTP/1.1 {answer.status} X\r\ncontent-length: {len(answer.body)}\r\n{more}\r\n"
        self._transport.write(head_text.encode() + answer.body)


class _TwoStub(asyncio.Protocol):
    """A connection in HTTP/2."""

    def __init__(self, stub: PushServiceStub) -> None:
        self._stub = stub
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._open: dict[int, tuple[dict[str, str], bytearray]] = {}

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        assert transport.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        self._h2.initiate_connection()
        transport.write(self._h2.data_to_send())

    def data_received(self, data: bytes) -> None:
        for event in self._h2.receive_data(data):
            if isinstance(event, RequestReceived):
                self._open[event.stream_id or 0] = ({str(n): str(v) for n, v in event.headers or ()}, bytearray())
            elif isinstance(event, DataReceived):
                self._open[event.stream_id or 0][1].extend(event.data or b"")
                self._h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            elif isinstance(event, StreamEnded):
                self._answer(event.stream_id or 0)
        self._transport.write(self._h2.data_to_send())

    def _answer(self, stream_id: int) -> None:
        headers, body = self._open.pop(stream_id)
        answer = self._stub.take(ServiceRequest(headers[":method"], headers[":path"], headers, bytes(body)))
        self._h2.send_headers(stream_id, [(":status", str(answer.status)), *answer.headers], not answer.body)
        if answer.body:
            self._h2.send_data(stream_id, answer.body, end_stream=True)


def browser_subscription(endpoint: str, auth: bytes) -> dict[str, Any]:
    """What a browser registers; its key is not kept."""
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    point = public.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    p256dh, secret = (base64.urlsafe_b64encode(data).decode().rstrip("=") for data in (point, auth))
    return {"endpoint": endpoint, "keys": {"p256dh": p256dh, "auth": secret}}


class Certificates(NamedTuple):
    """A server's certificate with its key, and the same as the file that a client trusts."""

    file: Path
    server: ssl.SSLContext


def make_certificates(folder: Path) -> Certificates:
    """A certificate for localhost that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    file, key_file = folder / "certificate.pem", folder / "key.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pkcs8, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, pkcs8, none))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file, key_file)
    return Certificates(file, server)


@asynccontextmanager
async def push_service(monkeypatch: pytest.MonkeyPatch, *, is_h2: bool = False) -> AsyncIterator[PushServiceStub]:
    """Yields a service whose certificate the clients of this process trust."""
    with tempfile.TemporaryDirectory() as folder:
        certificates = make_certificates(Path(folder))
        trusting = ssl.create_default_context(cafile=str(certificates.file))
        if is_h2:
            certificates.server.set_alpn_protocols(["h2"])
            trusting.set_alpn_protocols(["h2"])
        monkeypatch.setattr(http2_client if is_h2 else http_client, "tls_h2" if is_h2 else "tls", lambda: trusting)
        stub = PushServiceStub()
        loop = asyncio.get_running_loop()
        protocol = _TwoStub if is_h2 else _OneStub
        server = await loop.create_server(lambda: protocol(stub), "127.0.0.1", 0, ssl=certificates.server)
        stub.port = server.sockets[0].getsockname()[1]
        try:
            yield stub
        finally:
            server.close()
