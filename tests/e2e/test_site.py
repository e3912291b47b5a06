"""The web client's files over HTTP: what a browser is told about them, and that a wheel has them all."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from harness.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
WEB = ROOT / "src" / "nexo" / "web"
SDK = ROOT / "clients" / "js" / "src"
MODULE = "text/javascript; charset=utf-8"


@pytest.fixture
def http(server: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.address) as client:
        yield client


def addresses(page: str) -> list[str]:
    return re.findall(r'(?:href|src)="(/[^"]+)"', page)


def test_the_page_allows_nothing_but_its_own_files_and_pictures(http: httpx.Client) -> None:
    answer = http.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert policy["img-src"] == "'self' https: http: data: blob:"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"  # markup from text cannot even be tried
    assert not re.search(r"<script(?![^>]*\ssrc=)|\sstyle=|\son\w+=", answer.text)
    (styles,) = re.findall(r"<style>(.*?)</style>", answer.text, re.S)
    digest = base64.b64encode(hashlib.sha256(styles.encode()).digest()).decode()
    assert policy["style-src"] == f"'self' 'sha256-{digest}'"  # its own styles and no others
    assert "<!-- icons -->" not in answer.text


def test_every_file_of_the_page_is_there_and_kept_for_good(http: httpx.Client) -> None:
    found = addresses(http.get("/").text)
    assert 5 <= len(found) <= 10  # the modules are one file
    for address in found:
        answer = http.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        if address.endswith(".js"):
            assert answer.headers["content-type"] == MODULE


def test_what_is_loaded_later_gets_the_modules_of_the_page(http: httpx.Client) -> None:
    digest = re.findall(r"/web/([0-9a-f]+)/app.js", http.get("/").text)[0]
    stand_in = http.get(f"/web/{digest}/js/dom.js").text
    assert re.match(r'import \{ \$\d+ \} from "\.\./app\.js";\nexport const h = ', stand_in)
    assert "document.createElement" in http.get("/web/js/dom.js").text  # without the digest, as it is written


def test_the_service_worker_names_the_files_of_this_version(http: httpx.Client) -> None:
    answer = http.get("/sw.js")
    assert answer.headers["content-type"] == MODULE
    assert answer.headers["cache-control"] == "no-cache"
    shell = re.search(r"const SHELL = (\[.*\]);", answer.text)
    assert shell
    assert set(json.loads(shell[1])) == {"/", *addresses(http.get("/").text)}


def test_an_invite_link_leads_to_the_web_client(http: httpx.Client) -> None:
    assert http.get("/j/abc").text == http.get("/").text
    assert http.get("/j/abc/def").status_code == 404


def test_what_has_not_changed_is_not_sent_again(http: httpx.Client) -> None:
    for address in ("/", "/web/css/tokens.css", "/web/js/app.js", "/sdk/index.js"):
        first = http.get(address)
        assert first.headers["content-encoding"] == "gzip"
        assert first.headers["vary"] == "accept-encoding"
        again = http.get(address, headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        plain = http.get(address, headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.text == first.text
        assert plain.headers["etag"] != first.headers["etag"]


def test_the_sdk_is_served_as_it_is_written(http: httpx.Client) -> None:
    answer = http.get("/sdk/index.js")
    assert answer.headers["content-type"] == MODULE
    assert answer.content == (SDK / "index.js").read_bytes()


def test_nothing_else_is_given_away(http: httpx.Client) -> None:
    for address in (
        "/web/",
        "/web/../app.py",
        "/web/%2e%2e/app.py",
        "/web/0123456789abcdef/js/app.js",
        "/sdk/",
        "/nothing",
    ):
        answer = http.get(address)
        assert (answer.status_code, answer.json()["err_msg"]) == (404, "not_found")
    answer = http.post("/")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_the_settings_tell_what_texts_need(http: httpx.Client) -> None:
    settings = http.get("/web/settings.json").json()
    assert settings["min_create_members"] == 3
    assert settings["recall_window_s"] == 120
    assert set(settings) == {
        "version", "min_password_length", "min_create_members", "recall_window_s", "recall_admin", "edit_window_s",
        "files_max_bytes", "user_search", "registration",
    }  # fmt: skip


def test_a_wheel_has_the_web_client_and_the_sdk(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, place in ((WEB, "nexo/web"), (SDK, "nexo/web/sdk")):
        for file in folder.rglob("*.*"):
            assert f"{place}/{file.relative_to(folder).as_posix()}" in names
    assert "nexo/api/site.py" in names


def test_no_module_of_the_web_client_turns_text_into_markup() -> None:
    risky = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|\beval\(|new Function"
    )
    for file in WEB.rglob("*.js"):
        assert not risky.search(file.read_text()), file


def test_both_languages_have_the_same_texts_and_all_that_are_used() -> None:
    def texts(code: str) -> dict[str, str]:
        lines = [line for file in (WEB / "i18n").glob(f"*{code}.js") for line in file.read_text().splitlines()]
        return {found[1]: found[2] for line in lines if (found := re.match(r"  (\w+): (.+),$", line))}

    def values(text: str) -> set[str]:
        return set(re.findall(r"\{(\w+)\}", text))

    english, chinese = texts("en"), texts("zh")
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert values(text) == values(chinese[key]), key
    used = {
        key for file in (WEB / "js").rglob("*.js") for key in re.findall(r'\b(?:t|rich)\("(\w+)"', file.read_text())
    }
    assert used <= english.keys()
    sources = "".join(file.read_text() for file in (WEB / "js").rglob("*.js"))
    starts = re.findall(r"`(\w+_)\$\{", sources)
    unused = [key for key in english if f'"{key}"' not in sources and not key.startswith(tuple(starts))]
    assert not unused
