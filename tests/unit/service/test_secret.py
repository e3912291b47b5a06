"""The signing secret: configured or kept in a file, and never a bad one."""

from __future__ import annotations

import os
import secrets
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.store import make_config
from nexo.config import Config
from nexo.errors import StartupError
from nexo.service.secret import load_secret

SERVER_URL = "mysql://nexo:hush@host/nexo"


def embedded(folder: Path) -> Config:
    return make_config(data__dir=str(folder))


def failure(config: Config) -> str:
    with pytest.raises(StartupError) as caught:
        load_secret(config)
    return str(caught.value)


def test_the_first_start_makes_a_secret_and_later_ones_keep_it(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    made = load_secret(embedded(folder))
    assert len(made) == 64
    assert load_secret(embedded(folder)) == made
    assert stat.S_IMODE((folder / "secret").stat().st_mode) == 0o600
    assert os.listdir(folder) == ["secret"]
    assert load_secret(embedded(tmp_path / "elsewhere")) != made


def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        load_secret(embedded(tmp_path))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_many_that_start_together_have_one_secret(tmp_path: Path) -> None:
    config = embedded(tmp_path)
    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(lambda _: load_secret(config), range(64)))) == 1
    assert os.listdir(tmp_path) == ["secret"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_file_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    made = load_secret(embedded(tmp_path))
    path = tmp_path / "secret"
    path.chmod(mode)
    said = failure(embedded(tmp_path))
    assert f"chmod 600 {path}" in said
    assert made not in said
    path.chmod(0o400)
    assert load_secret(embedded(tmp_path)) == made


@pytest.mark.parametrize("text", ["", "\n", "too short"])
def test_a_damaged_file_is_refused_and_not_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "secret"
    path.write_text(text)
    path.chmod(0o600)
    assert f"the secret file {path} is damaged" in failure(embedded(tmp_path))
    assert path.read_text() == text


def test_a_place_where_no_file_can_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file" / "secret") in failure(embedded(tmp_path / "file"))
    (tmp_path / "secret").mkdir()
    assert "Is a directory" in failure(embedded(tmp_path))


def test_a_server_database_needs_a_configured_secret(tmp_path: Path) -> None:
    said = failure(make_config(SERVER_URL, data__dir=str(tmp_path)))
    assert "NEXO_AUTH__SECRET" in said
    assert "secrets.token_urlsafe" in said
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("url", ["", SERVER_URL])
def test_a_configured_secret_is_used_and_no_file_is_made(tmp_path: Path, url: str) -> None:
    secret = secrets.token_urlsafe(48)
    assert load_secret(make_config(url, data__dir=str(tmp_path), auth__secret=secret)) == secret
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "secret",
    [
        "short",
        "x" * 31,
        "x" * 64,
        "changeme" * 4,
        "change-me-change-me-change-me-please",
        "CHANGE_THIS_TO_A_LONG_RANDOM_STRING",
        "your-256-bit-secret-your-256-bit-secret",
        "<insert a very long secret key here>",
        "super-secret-jwt-signing-key-for-nexo",
        "replace me with a long random string!",
        "0123456789abcdef0123456789abcdef",
        "12345678901234567890123456789012",
        "abcdefghijklmnopqrstuvwxyz1234567890",
        "passwordpasswordpassword123456789",
        " " * 40,
    ],
)
def test_placeholders_are_refused_and_not_repeated(secret: str) -> None:
    said = failure(make_config(SERVER_URL, auth__secret=secret))
    assert said.startswith("auth.secret ")
    assert "secrets.token_urlsafe" in said
    assert secret not in said


def test_random_secrets_of_any_alphabet_are_taken() -> None:
    printable = [chr(code) for code in range(33, 127)]
    for _ in range(500):
        for secret in (
            secrets.token_hex(16),
            secrets.token_urlsafe(24),
            "".join(secrets.choice(printable) for _ in range(32)),
        ):
            assert load_secret(make_config(SERVER_URL, auth__secret=secret)) == secret
