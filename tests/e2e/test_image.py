"""The image of `deploy/Dockerfile`, without an engine: its lines are done by hand, and what they install is started."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from harness import processes
from harness.server_process import DidNotStart, ServerProcess

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
BUILD, _, IMAGE = DOCKERFILE.partition("\n\nFROM ")
PYTHON_ALONE = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NEXO_"))}


def copied() -> Iterator[tuple[str, str]]:
    """What the build stage copies from the repository, and to where."""
    for line in re.findall(r"^COPY +(?!--from)(.+)$", BUILD, re.MULTILINE):
        *sources, target = shlex.split(line)
        for source in sources:
            into_folder = target.endswith("/") or target == "."
            yield source, f"{target}/{Path(source).name}" if into_folder else target


@pytest.fixture(scope="module")
def program() -> Path:
    """The `nexo` of a fresh environment, whose Nexo is built from what is copied, and from nothing else. The packages
    of the lock file are those of this test run."""
    folder = processes.new_dir("image")
    sources, environment = folder / "src", folder / "nexo"
    for source, target in copied():
        place = sources / target
        place.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copyfile
        copy(ROOT / source, place)
    (command,) = re.findall(r"^RUN /opt/nexo/bin/(pip install .*--no-deps \.)$", BUILD, re.MULTILINE)
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    paths = sysconfig.get_paths(vars={"base": str(environment), "platbase": str(environment)})
    # a folder in a .pth is searched for packages, its own .pth files (this checkout) are not read
    Path(paths["purelib"], "locked.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    options = ["--quiet", "--disable-pip-version-check", "--no-index"]
    done = subprocess.run(
        [python, "-m", *shlex.split(command), *options, "--ignore-installed"],
        cwd=sources,
        env=PYTHON_ALONE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return environment / "bin" / "nexo"


def server_of(program: Path) -> ServerProcess:
    return ServerProcess(program=program, wrapper=["env", "-u", "PYTHONPATH"], bare=True)


def test_what_the_image_holds_starts_and_serves_its_pages(program: Path) -> None:
    shown = subprocess.run(
        [program.with_name("python"), "-c", "import nexo; print(nexo.__file__)"],
        cwd=program.parent,
        env=PYTHON_ALONE,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(shown.stdout.strip()).is_relative_to(program.parents[1]), "not the checkout, nor the copied sources"
    with server_of(program) as server, httpx.Client(base_url=server.address, trust_env=False) as http:
        answers = {path: http.get(path) for path in ("/", "/sdk/index.js", "/healthz", "/readyz", "/docs", "/admin")}
        assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(answers, 200)
        assert answers["/sdk/index.js"].content == (ROOT / "clients/js/src/index.js").read_bytes()
        for address in re.findall(r'(?:href|src)="(/[^"]+)"', answers["/"].text):
            assert http.get(address).status_code == 200, address
        (health,) = re.findall(r"HEALTHCHECK[^\[]+CMD (\[.+\])$", IMAGE, re.MULTILINE)
        _, *arguments = json.loads(health.replace(":8900", f":{server.port}"))
        subprocess.run([program.with_name("python"), *arguments], env=PYTHON_ALONE, check=True, timeout=30)


def test_an_installation_without_the_sdk_states_what_is_missing(program: Path) -> None:
    (sdk,) = program.parents[1].glob("lib/python*/site-packages/nexo/web/sdk")
    kept = sdk.rename(program.parents[1] / "sdk")
    try:
        with pytest.raises(DidNotStart) as ended:
            server_of(program).start()
    finally:
        kept.rename(sdk)
    assert ended.value.exit_code == 2
    assert "Traceback" not in ended.value.output
    assert "sdk/index.js of the web client missing" in ended.value.output


def test_the_image_starts_the_server() -> None:
    assert json.loads(re.findall(r"^ENTRYPOINT (.+)$", IMAGE, re.MULTILINE)[0]) == ["nexo"]
    assert json.loads(re.findall(r"^CMD (.+)$", IMAGE, re.MULTILINE)[0]) == ["serve"]
