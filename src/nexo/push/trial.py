"""A test notification to all devices of a user, for operators."""

from __future__ import annotations

from collections.abc import Sequence

from nexo.core.push import PushTrial
from nexo.core.push_texts import trial_payload
from nexo.ids import now_ms
from nexo.push.ports import Provider, PushRequest, PushStore

TTL_S = 60


async def try_out(store: PushStore, providers: Sequence[Provider], user_id: str) -> list[PushTrial]:
    """Returns what the service of each device has answered."""
    by_kind = {provider.kind: provider for provider in providers}
    trials = []
    for target in await store.targets_of([user_id]):
        provider = by_kind.get(target.kind)
        if provider is None:
            trials.append(PushTrial(target.kind, target.device_id, False, "this kind is not configured"))
            continue
        request = PushRequest(target, trial_payload(target.lang, now_ms()), TTL_S, True)
        answer = await provider.send(request)
        trials.append(PushTrial(target.kind, target.device_id, answer.is_taken, answer.detail))
    return trials
