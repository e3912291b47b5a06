"""The users of the canary belong to the server, also where a client was faster."""

from __future__ import annotations

import pytest

from harness.core import open_test_core
from nexo.config import load
from nexo.errors import NexoError
from nexo.gateway.canary import Canary
from nexo.ids import CANARY_IDS
from nexo.service.accounts import Accounts
from nexo.store.account_store import SqlAccounts

PASSWORD = "a long password"


@pytest.mark.parametrize("user_id", ["nexo.canary", "nexo.canary.echo", "nexo.admin", "Nexo.Canary", "NEXO.x"])
async def test_ids_of_the_server_cannot_be_registered(core_url: str, user_id: str) -> None:
    async with open_test_core(core_url, ()) as core:
        accounts = Accounts(SqlAccounts(core.store.database, core.store.seam), core.config, "s" * 32)
        with pytest.raises(NexoError) as refused:
            await accounts.register(PASSWORD, user_id)
        assert refused.value.name == "bad_user_id"
        accounts.close()


async def test_a_canary_that_a_client_has_registered_is_taken_and_its_message_passes(core_url: str) -> None:
    canary, echo = CANARY_IDS
    config = load(env={}, flags={"auth.argon2_memory_kib": 8, "auth.argon2_time_cost": 1})
    async with open_test_core(core_url, ("bob",)) as core:
        store = SqlAccounts(core.store.database, core.store.seam)
        accounts = Accounts(store, config, "s" * 32)
        hashed = await accounts.passwords.hash(PASSWORD)
        for user_id in CANARY_IDS:
            await store.add_user(user_id, hashed, "", "", None, False)
        session = await accounts.authenticate((await accounts.login(canary, PASSWORD)).access_token)
        await core.sending.send(canary, client_msg_id="canary", recv_id="bob", content="mine")
        await accounts.block(echo, canary)

        await core.store.claim_canary()

        with pytest.raises(NexoError, match="invalid_credentials"):
            await accounts.login(canary, PASSWORD)
        accounts.forget_all()
        with pytest.raises(NexoError, match="session_invalid"):
            await accounts.check_session(session)
        probe = Canary.__new__(Canary)
        probe._sending = core.sending
        first, second = await probe._send(), await probe._send()
        assert first.message.recv_id == echo
        assert first.message.server_msg_id == second.message.server_msg_id
        accounts.close()
