"""The gateway and the HTTP API on one port."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from nexo.api.app import make_api
from nexo.api.site import Site
from nexo.assembly.accounts import make_accounts, make_limits
from nexo.assembly.backend import make_backend
from nexo.assembly.calls import make_calls
from nexo.assembly.live import make_live
from nexo.assembly.measuring import measure
from nexo.assembly.messaging import Messaging, Troubles
from nexo.assembly.openim import make_openim, make_openim_api
from nexo.assembly.people import make_actions
from nexo.assembly.push import Pushing
from nexo.cluster.session_policy import SessionPolicy
from nexo.gateway.canary import Canary
from nexo.gateway.gateway import Gateway
from nexo.gateway.session_ends import SessionEnds
from nexo.metrics.exposition import Metrics
from nexo.metrics.siblings import Siblings
from nexo.service.accounts import Accounts
from nexo.supervisor import SupervisorLink
from nexo.transport.server import Server


class Sibling(Struct, frozen=True):
    """One of several processes on a port."""

    number: int
    link: SupervisorLink
    folder: Path  # in which the processes exchange their metrics


class Assembled(Struct, frozen=True):
    server: Server
    accounts: Accounts
    gateway: Gateway
    sessions: SessionEnds
    policy: SessionPolicy | None
    troubles: Troubles


def make_server(
    messaging: Messaging,
    pushing: Pushing,
    secret: str,
    metrics: Metrics,
    instance: str,
    siblings: Siblings | None = None,
) -> Assembled:
    core, bus, delivery = messaging.core, messaging.bus, messaging.delivery
    config, store = core.config, core.store
    limits = make_limits(config, bus)
    accounts = make_accounts(
        config,
        store,
        secret,
        lambda sids, reason: sessions.ended(sids, reason),
        lambda session: sessions.renewed(session),
    )
    sessions = SessionEnds(accounts, delivery, messaging.publisher)
    policy = None
    if messaging.publisher is not None:
        policy = SessionPolicy(delivery.hub, messaging.publisher, config.session.policy != "multi")
    actions = make_actions(core, accounts, limits)
    messaging.background.serve("last_seen", actions.people.last_seen.run)
    calls, call_handlers = make_calls(core, bus, bus.presence, delivery, messaging.background, limits, pushing.push)
    openim = make_openim(messaging, actions, metrics)
    gateway = Gateway(
        config,
        actions,
        delivery,
        sends=store.committer.meter,
        bus=bus,
        background=messaging.background,
        sessions=sessions,
        calls=call_handlers,
        policy=policy,
        instance=instance,
        openim=None if openim is None else openim.notices,
    )
    http = measure(
        metrics,
        config,
        store.url.engine,
        store,
        messaging.journal,
        messaging.hooks,
        messaging.search,
        pushing.push,
        messaging.files,
        core.conversations,
        core.reaction_events,
        delivery,
        gateway.measures,
        accounts,
        actions.people.last_seen,
        limits,
        calls,
        bus,
        messaging.background,
    )
    shown = metrics
    if siblings is not None:
        siblings.start()
        shown = Metrics()
        shown.add(siblings.samples)
    live = make_live(instance, metrics, siblings, messaging)
    troubles = Troubles()
    backend = make_backend(config, store, accounts, secret, messaging.journal, messaging.hooks, messaging.tracing)
    api = make_api(
        config=config,
        actions=actions,
        online=delivery,
        canary=Canary(gateway, delivery, core.sending, store.beat),
        expose=shown.expose,
        backend=backend,
        search=messaging.search,
        files=messaging.files,
        calls=calls,
        push=pushing.devices,
        background=messaging.background,
        troubles=troubles,
        meter=http,
        live=live,
        site=Site(config),
        openim=None if openim is None else make_openim_api(openim, messaging, actions, backend),
    )
    server = Server(config, api, gateway, gateway.traffic.refusals.add)
    server.before_stop.append(messaging.journal.pollers.stop)
    http.add(server.watch.samples)
    return Assembled(server, accounts, gateway, sessions, policy, troubles)
