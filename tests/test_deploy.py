"""The files in deploy/: what they set exists, nothing secret is in them, and their own tools accept them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
import yaml

from harness import processes
from harness.waiting import until_blocking
from nexo.cli import EXIT_UNUSABLE
from nexo.config import load, parse_redis_url, parse_store_url
from nexo.config.loading import describe

DEPLOY = Path(__file__).parents[1] / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
COTURN = DEPLOY / "compose.coturn.yaml"
UNIT = DEPLOY / "nexo.service"
SETTINGS = {field.env for field in describe()}


@pytest.mark.parametrize("name", ["compose.yaml", "nexo.service", "Dockerfile"])
def test_every_setting_that_is_named_exists(name: str) -> None:
    text = (DEPLOY / name).read_text()
    named = set(re.findall(r"\bNEXO_[A-Z0-9]+__[A-Z0-9_]+", text))
    assert named <= SETTINGS
    assert named, "otherwise this test looks for the wrong thing"


def test_the_image_is_built_from_everything_that_the_wheel_contains() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    sources = [Path(source) for source in project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]]
    copied = [Path(source) for source in re.findall(r"^COPY (\S+) ", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)]
    missing = [source for source in sources if not any(source.is_relative_to(one) for one in copied)]
    assert not missing


def test_compose_has_no_secret_of_its_own_and_demands_each() -> None:
    text = COMPOSE.read_text()
    used = set(re.findall(r"\$\{(NEXO_[A-Z_]+)(?=[:}])", text))
    required = set(re.findall(r"\$\{(NEXO_[A-Z_]+):\?", text))
    assert used - required == {"NEXO_HTTP_PORT"}
    example = dict(
        line.split("=", 1) for line in (DEPLOY / ".env.example").read_text().splitlines() if "=" in line[:40]
    )
    assert required <= example.keys()
    assert not any(example[name] for name in required)


def test_what_compose_sets_is_a_valid_configuration() -> None:
    env = dict(re.findall(r"^    (NEXO_\w+__\w+): ['\"](.*)['\"]$", COMPOSE.read_text(), re.MULTILINE))
    filled = {name: re.sub(r"\$\{\w+:\?[^}]*\}", "abc", value) for name, value in env.items()}
    config = load(env=filled)
    assert config.store.url == "mysql://nexo:abc@mariadb:3306/nexo"
    assert config.http.trusted_proxies == ["172.28.90.10"]


def test_compose_trusts_the_one_address_that_its_proxy_has() -> None:
    compose = yaml.safe_load(COMPOSE.read_text())
    (trusted,) = compose["x-nexo"]["environment"]["NEXO_HTTP__TRUSTED_PROXIES"].split(",")
    assert compose["services"]["nginx"]["networks"]["nexo"]["ipv4_address"] == trusted
    (pool,) = compose["networks"]["nexo"]["ipam"]["config"]
    assert ip_address(trusted) in ip_network(pool["subnet"])
    assert ip_address(trusted) not in ip_network(pool["ip_range"]), "another container might be given it"


def test_images_are_named_by_their_exact_version() -> None:
    images = re.findall(r"^ +image: (\S+)$", COMPOSE.read_text(), re.MULTILINE)
    images += re.findall(r"^FROM (\S+)", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert len(images) == 6
    inexact = [name for name in images if not re.fullmatch(r"\w+:\d+\.\d+\.\d+(-[\w-]+)?(@sha256:[0-9a-f]{64})?", name)]
    assert inexact == ["nexo"], "only what is built here has no version"


def test_no_secret_is_on_a_command_line() -> None:
    for name, service in yaml.safe_load(COMPOSE.read_text())["services"].items():
        for key in ("command", "entrypoint", "healthcheck"):
            text = str(service.get(key, "")).replace("$$", "")
            assert "${" not in text, f"{key} of {name}: what is filled in by compose is on the command line"


@pytest.mark.servers
def test_redis_of_compose_takes_its_password_from_its_configuration() -> None:
    service = yaml.safe_load(COMPOSE.read_text())["services"]["redis"]
    (script,) = service["command"]
    folder, port = processes.new_dir("redis"), processes.free_port()
    command = [*service["entrypoint"], script.replace("$$", "$").replace("\nCONF", f"\nport {port}\nCONF")]
    env = processes.ENVIRONMENT | {"REDISCLI_AUTH": "a-password-of-compose"}
    server = processes.spawn(command, cwd=folder, log=folder / "log", env=env)
    try:

        def ping(**password: str) -> str:
            plain = {name: value for name, value in os.environ.items() if name != "REDISCLI_AUTH"}
            ask = ["redis-cli", "-p", str(port), "ping"]
            return subprocess.run(ask, env=plain | password, capture_output=True, text=True, check=False).stdout

        until_blocking(lambda: ping(REDISCLI_AUTH="a-password-of-compose") == "PONG\n")
        assert "NOAUTH" in ping()
        assert "a-password" not in Path(f"/proc/{server.pid}/cmdline").read_text()
    finally:
        server.kill()
        server.wait()


def test_the_builder_is_sent_what_is_copied_and_nothing_else() -> None:
    lines = (DEPLOY.parent / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert sorted(line[1:] for line in lines if line.startswith("!")) == sorted(" ".join(copied).split())


def find_tool(name: str) -> str:
    found = shutil.which(name)
    if found is None and os.environ.get("CI"):
        pytest.fail(f"{name} is not installed")
    return found or pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("files", [(COMPOSE,), (COMPOSE, COTURN)], ids=["alone", "coturn"])
def test_compose_is_accepted_by_its_own_tool(tmp_path: Path, files: tuple[Path, ...]) -> None:
    tool = find_tool("docker-compose")
    (tmp_path / "env").touch()  # not the one that somebody may have in deploy/
    demanded = re.findall(r"\$\{(NEXO_[A-Z_]+):\?", "".join(file.read_text() for file in files))
    secrets = dict.fromkeys(demanded, "x")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NEXO_")}

    def config(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        named = [option for file in files for option in ("-f", str(file))]
        command = [tool, *named, "--env-file", str(tmp_path / "env"), "config"]
        return subprocess.run(command, env=plain | env, capture_output=True, text=True, check=False)

    done = config(secrets)
    assert done.returncode == 0, done.stderr
    for name in secrets:
        refused = config({other: value for other, value in secrets.items() if other != name})
        assert refused.returncode != 0, f"{name} is not demanded"


def test_the_unit_is_accepted_by_systemd(tmp_path: Path) -> None:
    tool = find_tool("systemd-analyze")
    unit = tmp_path / "nexo.service"
    unit.write_text(
        UNIT.read_text().replace("/opt/nexo/bin/nexo", "/bin/true")
    )  # it looks whether the program is there
    done = subprocess.run([tool, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def unit_settings() -> dict[str, dict[str, str]]:
    """Settings of the unit that stand in it once."""
    found: dict[str, dict[str, str]] = {}
    for title, body in re.findall(r"^\[(\w+)\]$(.*?)(?=^\[|\Z)", UNIT.read_text(), re.MULTILINE | re.DOTALL):
        found[title] = dict(re.findall(r"^(\w+)=(.*)$", body, re.MULTILINE))
    return found


def test_the_unit_starts_a_command_that_exists() -> None:
    assert unit_settings()["Service"]["ExecStart"].startswith("/opt/nexo/bin/nexo serve --config")


def test_only_what_an_operator_must_heal_ends_the_restarts_of_the_unit() -> None:
    unit = unit_settings()
    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Service"]["RestartPreventExitStatus"] == str(EXIT_UNUSABLE)
    # otherwise a database that is away for longer than five starts would be the end of the service
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"


def test_the_urls_in_the_guide_are_understood() -> None:
    text = (DEPLOY.parent / "docs" / "deploy.md").read_text()
    redis = [parse_redis_url(url) for url in re.findall(r"\brediss?(?:\+\w+)?://\S+", text)]
    assert {url.mode for url in redis} == {"single", "sentinel", "cluster"}
    assert {url.tls for url in redis} == {True, False}
    stores = re.findall(r"\b(?:postgresql|mysql)://\S+", text)
    assert [parse_store_url(url).engine for url in stores] == ["postgresql", "postgresql", "mysql"]
