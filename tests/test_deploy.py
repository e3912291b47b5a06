"""The files in deploy/: what they set exists, nothing secret is in them, and their own tools accept them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nexo.config import load, parse_redis_url, parse_store_url
from nexo.config.loading import describe

DEPLOY = Path(__file__).parents[1] / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
UNIT = DEPLOY / "nexo.service"
SETTINGS = {field.env for field in describe()}


@pytest.mark.parametrize("name", ["compose.yaml", "nexo.service", "Dockerfile"])
def test_every_setting_that_is_named_exists(name: str) -> None:
    text = (DEPLOY / name).read_text()
    named = set(re.findall(r"\bNEXO_[A-Z0-9]+__[A-Z0-9_]+", text))
    assert named <= SETTINGS
    assert named, "otherwise this test looks for the wrong thing"


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
    assert config.http.trusted_proxies == ["172.28.90.0/24"]


def find_tool(name: str) -> str:
    found = shutil.which(name)
    if found is None and os.environ.get("CI"):
        pytest.fail(f"{name} is not installed")
    return found or pytest.skip(f"{name} is not installed")


def test_compose_is_accepted_by_its_own_tool(tmp_path: Path) -> None:
    tool = find_tool("docker-compose")
    (tmp_path / "env").touch()  # not the one that somebody may have in deploy/
    secrets = {name: "x" for name in re.findall(r"\$\{(NEXO_[A-Z_]+):\?", COMPOSE.read_text())}
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NEXO_")}

    def config(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        command = [tool, "-f", str(COMPOSE), "--env-file", str(tmp_path / "env"), "config"]
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


def test_the_unit_starts_a_command_that_exists() -> None:
    text = UNIT.read_text()
    assert "ExecStart=/opt/nexo/bin/nexo serve --config" in text
    assert "RestartPreventExitStatus=2" in text


def test_the_urls_in_the_guide_are_understood() -> None:
    text = (DEPLOY.parent / "docs" / "deploy.md").read_text()
    redis = [parse_redis_url(url) for url in re.findall(r"\brediss?(?:\+\w+)?://\S+", text)]
    assert {url.mode for url in redis} == {"single", "sentinel", "cluster"}
    assert {url.tls for url in redis} == {True, False}
    stores = re.findall(r"\b(?:postgresql|mysql)://\S+", text)
    assert [parse_store_url(url).engine for url in stores] == ["postgresql"]
