"""Calls of the web client, from outside: its connections for media are found, sent through a TURN server if wanted, and
what arrives over them is measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.browser import WAIT_MS, Window

FAKE_DEVICES = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
ALLOWED: dict[str, Any] = {"permissions": ["microphone", "camera"]}

_WATCH = """([policy, roads]) => {
  const Real = window.RTCPeerConnection;
  window.callPeers = [];
  window.RTCPeerConnection = class extends Real {
    constructor(config) {
      const text = JSON.stringify(config.iceServers ?? []);
      const iceServers = JSON.parse(Object.entries(roads).reduce((all, [from, to]) => all.replaceAll(from, to), text));
      super({ ...config, iceServers, iceTransportPolicy: policy });
      window.callPeers.push(this);
    }
  };
}"""

_MEASURE = """async () => {
  const found = { pictures: 0, energy: 0, own: "", other: "", state: "" };
  const peer = window.callPeers?.at(-1);
  if (!peer) return found;
  const stats = await peer.getStats();
  found.state = peer.connectionState;
  for (const one of stats.values()) {
    if (one.type === "inbound-rtp" && one.kind === "video") found.pictures += one.framesDecoded ?? 0;
    if (one.type === "inbound-rtp" && one.kind === "audio") found.energy += one.totalAudioEnergy ?? 0;
    if (one.type === "transport" && one.selectedCandidatePairId) {
      const pair = stats.get(one.selectedCandidatePairId);
      found.own = stats.get(pair.localCandidateId)?.candidateType ?? "";
      found.other = stats.get(pair.remoteCandidateId)?.candidateType ?? "";
    }
  }
  return found;
}"""
_MORE = f"""async ([pictures, energy]) => {{
  const found = await ({_MEASURE})();
  return found.pictures >= pictures && found.energy > energy && found.state === "connected";
}}"""


class Arrived(NamedTuple):
    """What has arrived at a window, and by which kinds of candidates."""

    pictures: int
    energy: float
    own: str
    other: str
    state: str


def watch(window: Window, policy: str = "all", roads: Mapping[str, str] | None = None) -> Window:
    """Before the window is opened. `roads` are other addresses for some TURN servers: this window's own way there."""
    window.page.add_init_script(f"({_WATCH})({json.dumps([policy, dict(roads or {})])})")
    return window


def arrived(window: Window) -> Arrived:
    return Arrived(**window.page.evaluate(_MEASURE))


def sees_and_hears(window: Window, pictures: int = 20, timeout_ms: int = WAIT_MS) -> Arrived:
    """Until so many more pictures and some more sound have arrived."""
    before = arrived(window)
    wanted = [before.pictures + pictures, before.energy]
    window.page.wait_for_function(_MORE, arg=wanted, timeout=timeout_ms)
    return arrived(window)
