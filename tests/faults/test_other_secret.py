"""One `auth.secret` for all instances of a database: another one is refused at the start, with advice."""

from __future__ import annotations

import pytest

from harness.cluster import cluster
from harness.server_process import DidNotStart, ServerProcess

pytestmark = pytest.mark.servers

OTHER = "quite another signing key 7Hs0vXqLw2Zp9"


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
def test_an_instance_with_another_secret_does_not_start_beside_running_ones(engine: str) -> None:
    with cluster(engine, 1) as one:
        other = ServerProcess(**{**one.settings, "auth__secret": OTHER})
        try:
            with pytest.raises(DidNotStart) as refused:
                other.start()
            assert refused.value.exit_code == 2
            assert "auth.secret" in refused.value.output
            assert "stop all" in refused.value.output
            assert OTHER not in refused.value.output
            assert "Traceback" not in refused.value.output
            digests = [row[0] for row in one.select("SELECT secret_digest FROM instances")]
            assert digests
            assert all(one.secret not in digest for digest in digests)
            assert one[0].stop() == 0
            other.start()  # all were stopped: that is how a secret is changed
        finally:
            other.kill()


def test_a_secret_may_be_changed_after_all_instances_were_killed() -> None:
    """What they left behind ends by itself; the new one waits for that."""
    with cluster("postgresql", 1) as one:
        one[0].kill()
        with ServerProcess(**{**one.settings, "auth__secret": OTHER}):
            pass
