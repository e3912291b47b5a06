"""A device that takes part in calls without a browser: the Python SDK for the signalling, aiortc for the media.

It sends a picture that changes and a tone, and measures what arrives.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from fractions import Fraction
from typing import Any, TypeVar

from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCIceServer,
    RTCIceTransportPolicy,
    RTCPeerConnection,
    RTCSessionDescription,
    VideoStreamTrack,
)
from aiortc.mediastreams import MediaStreamError
from aiortc.sdp import candidate_from_sdp
from av import AudioFrame

from harness.waiting import until
from nexo_client import Call, NexoClient

RATE, SAMPLES = 48_000, 960  # 20 ms
TONE_HZ, LOUDNESS = 440, 8000
LOUD = 0.02  # of full scale: above what silence and comfort noise have

T = TypeVar("T")


class Tone(MediaStreamTrack):
    """A sine."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self._sent = 0
        self._began = 0.0

    async def recv(self) -> AudioFrame:
        loop = asyncio.get_running_loop()
        self._began = self._began or loop.time()
        await asyncio.sleep(self._began + self._sent / RATE - loop.time())
        frame = AudioFrame(format="s16", layout="mono", samples=SAMPLES)
        samples = (
            int(LOUDNESS * math.sin(2 * math.pi * TONE_HZ * (self._sent + number) / RATE)) for number in range(SAMPLES)
        )
        frame.planes[0].update(b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples))
        frame.sample_rate, frame.pts, frame.time_base = RATE, self._sent, Fraction(1, RATE)
        self._sent += SAMPLES
        return frame


class Measured:
    """What has arrived."""

    def __init__(self) -> None:
        self.pictures = 0
        self.widths: set[int] = set()
        self.loud_frames = 0  # of sound, 20 ms each

    def take(self, frame: Any) -> None:
        if not isinstance(frame, AudioFrame):
            self.pictures += 1
            self.widths.add(frame.width)
            return
        samples = memoryview(bytes(frame.planes[0])).cast("h")
        loudness = math.sqrt(sum(one * one for one in samples) / max(1, len(samples))) / 32_768
        self.loud_frames += loudness > LOUD


class CallPeer:
    """`relayed`: media goes through a TURN server only."""

    def __init__(self, client: NexoClient, *, relayed: bool = False) -> None:
        self.client = client
        self.measured = Measured()
        self.call: Call | None = None
        self.rtc: RTCPeerConnection | None = None
        self._policy = RTCIceTransportPolicy.RELAY if relayed else RTCIceTransportPolicy.ALL
        self._reading: list[asyncio.Task[None]] = []

    async def _open(self) -> RTCPeerConnection:
        servers = [
            RTCIceServer(one.urls, one.username, one.credential) for one in await self.client.calls.ice_servers()
        ]
        self.rtc = rtc = RTCPeerConnection(RTCConfiguration(iceServers=servers, iceTransportPolicy=self._policy))
        rtc.on("track", lambda track: self._reading.append(asyncio.create_task(self._read(track))))
        rtc.addTrack(Tone())
        rtc.addTrack(VideoStreamTrack())
        return rtc

    async def _read(self, track: MediaStreamTrack) -> None:
        with suppress(MediaStreamError):
            while True:
                self.measured.take(await track.recv())

    async def invite(self, user_id: str) -> Call:
        rtc = await self._open()
        await rtc.setLocalDescription(await rtc.createOffer())  # with all candidates: aiortc has no later ones
        call = self.call = await self.client.calls.invite(user_id, kind="video", sdp=rtc.localDescription.sdp)
        call.on("accepted", lambda sdp: self._answered(call, sdp))
        return call

    async def _answered(self, call: Call, sdp: str) -> None:
        assert self.rtc is not None
        await self.rtc.setRemoteDescription(RTCSessionDescription(sdp, "answer"))
        await self._follow(call)

    async def accept(self, call: Call) -> None:
        self.call = call
        rtc = await self._open()
        assert call.sdp is not None
        await rtc.setRemoteDescription(RTCSessionDescription(call.sdp, "offer"))
        await self._follow(call)
        await rtc.setLocalDescription(await rtc.createAnswer())
        call.accept(rtc.localDescription.sdp)

    async def _follow(self, call: Call) -> None:
        call.on("ice", self._add)
        for candidate in list(call.candidates):
            await self._add(candidate)

    async def _add(self, fields: dict[str, Any]) -> None:
        text = fields["candidate"].removeprefix("candidate:")
        if not text or ".local " in text:  # a name that only browsers can resolve
            return
        candidate = candidate_from_sdp(text)
        candidate.sdpMid, candidate.sdpMLineIndex = fields.get("sdpMid"), fields.get("sdpMLineIndex")
        assert self.rtc is not None
        await self.rtc.addIceCandidate(candidate)

    async def sees_and_hears(self, pictures: int = 30, loud_frames: int = 50) -> None:
        """Until that many more have arrived."""
        measured = self.measured
        pictures, loud_frames = measured.pictures + pictures, measured.loud_frames + loud_frames
        await until(
            lambda: measured.pictures >= pictures and measured.loud_frames >= loud_frames, lambda: str(vars(measured))
        )

    def routes(self) -> set[tuple[str, str]]:
        """The kinds of candidates, own and other, over which media goes."""
        assert self.rtc is not None
        pairs = [
            transceiver.receiver.transport.transport._connection._nominated.values()
            for transceiver in self.rtc.getTransceivers()
        ]
        return {(pair.local_candidate.type, pair.remote_candidate.type) for chosen in pairs for pair in chosen}

    async def close(self) -> None:
        if self.rtc is not None:
            await self.rtc.close()
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)


@asynccontextmanager
async def call_peer(address: str, user_id: str, password: str, *, relayed: bool = False) -> AsyncIterator[CallPeer]:
    async with NexoClient(address) as client:
        await client.login(user_id, password)
        peer = CallPeer(client, relayed=relayed)
        try:
            await client.connect()
            yield peer
        finally:
            await peer.close()


class BlockingPeer:
    """A peer in a thread of its own, for tests that are no coroutines."""

    def __init__(self, loop: asyncio.AbstractEventLoop, peer: CallPeer) -> None:
        self._loop = loop
        self.peer = peer
        self._rings: asyncio.Queue[Call] = asyncio.Queue()
        peer.client.calls.on("incoming", self._rings.put_nowait)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def accept_next(self) -> None:
        await self.peer.accept(await self._rings.get())

    async def hang_up(self) -> None:
        assert self.peer.call is not None
        self.peer.call.end()


@contextmanager
def blocking_peer(address: str, user_id: str, password: str) -> Iterator[BlockingPeer]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opened = call_peer(address, user_id, password)
    try:
        peer = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(60)
        try:
            yield BlockingPeer(loop, peer)
        finally:
            asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
