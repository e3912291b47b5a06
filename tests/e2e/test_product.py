"""A product with chat over HTTP: the Node shop of examples/product, and the shell lines of docs/product.md."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import httpx

from harness.processes import free_port
from harness.product_page import NEXO_ADDRESS, files, page_product, python_command, shell_blocks
from harness.server_process import NEXO
from harness.shop import nexo_for, node_shop, shop
from harness.waiting import until_blocking


def test_the_node_shop_gives_tokens_to_its_users_and_hears_of_their_messages() -> None:
    port = free_port()
    with nexo_for(port) as (server, key), shop(node_shop(), server.address, key, port) as opened:
        with httpx.Client(base_url=opened.url) as stranger:
            assert stranger.get("/session").json()["user"] is None
            assert stranger.post("/chat-token").status_code == 401
            assert stranger.get("/waiting").status_code == 404
            wrong = stranger.post("/login", json={"name": "ann", "password": "wrong"})
            assert (wrong.status_code, wrong.text) == (403, "This name and password do not fit")
            forged = stranger.post("/nexo-webhook", json={"events": []}, headers={"webhook-id": "1"})
            assert (forged.status_code, forged.text) == (401, "bad_signature")
            page = stranger.get("/")
            assert "shop.js" in page.text
        with opened.sign_in("ann") as ann, opened.sign_in("sam") as sam, httpx.Client(base_url=server.address) as nexo:
            assert ann.get("/session").json() == {
                "user": {"name": "ann", "staff": False}, "nexo": server.address, "support": "support",
            }  # fmt: skip
            as_ann = {"authorization": f"Bearer {ann.post('/chat-token').text}"}
            history = nexo.get("/msg/history?conversation_id=si_customer-1001:support", headers=as_ann).json()["data"]
            assert [one["content"] for one in history["messages"]] == ["Hello Ann! Ask us anything about tea."]
            asked = {"client_msg_id": "q1", "recv_id": "support", "content": "Do you have green tea?"}
            assert nexo.post("/msg/send", json=asked, headers=as_ann).json()["err_code"] == 0
            until_blocking(lambda: sam.get("/waiting").json()["waiting"] == {"customer-1001": asked["content"]})
            as_support = {"authorization": f"Bearer {sam.post('/chat-token').text}"}
            answered = {"client_msg_id": "a1", "recv_id": "customer-1001", "content": "Sencha, since Monday"}
            assert nexo.post("/msg/send", json=answered, headers=as_support).json()["err_code"] == 0
            until_blocking(lambda: sam.get("/waiting").json()["waiting"] == {})
            assert "customer-1001 asks: Do you have green tea?" in opened.log.read_text()


def shell(script: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_node_backend_and_the_shell_lines_of_the_page_on_products(tmp_path: Path) -> None:
    assert files().keys() == {"chat.py", "chat.mjs", "page.html", "events.py", "webhook.py"}
    start, key_line, install, calls, hook_line = shell_blocks()
    assert start == "NEXO_HTTP__CORS_ORIGINS=http://127.0.0.1:8000 NEXO_HOOKS__ALLOW_PRIVATE=true make run\n"
    assert "clients/python" in install
    port = free_port()
    with nexo_for(port) as (server, _):
        # the line as it is, with this checkout and the data of this server
        checkout = tmp_path / "nexo"
        (checkout / ".venv").mkdir(parents=True)
        (checkout / ".venv" / "bin").symlink_to(NEXO.parent)
        (checkout / "data").symlink_to(server.data)
        shell(key_line.replace("~/nexo", str(checkout)), tmp_path)
        key = (tmp_path / "key").read_text().strip()
        said = shell(calls.replace(NEXO_ADDRESS, server.address), tmp_path)
        answers = [json.loads(text) for text in said.replace("}{", "}\n{").splitlines()]
        assert [answer["err_code"] for answer in answers] == [0, 0]
        assert answers[0]["data"]["users"][0]["nickname"] == "Ann"
        assert answers[1]["data"]["access_token"]
        with page_product(server, key, [str(shutil.which("node")), "chat.mjs"], port) as product:
            token = httpx.post(f"{product.url}/chat-token?user=ben").text
            mine = httpx.get(f"{server.address}/user/info", headers={"authorization": f"Bearer {token}"}).json()
            assert mine["data"]["nickname"] == "Ben"
            receiver_port = free_port()
            line = hook_line.replace("$NEXO", str(checkout)).replace(":8001", f":{receiver_port}")
            shell(line, product.folder)
            receiver = product.folder / "webhook.py"
            receiver.write_text(receiver.read_text().replace("8001", str(receiver_port)))
            with product.start(python_command("webhook.py")) as log:
                sent = {"client_msg_id": "w1", "recv_id": "ann", "content": "to the webhook"}
                httpx.post(f"{server.address}/msg/send", json=sent, headers={"authorization": f"Bearer {token}"})
                until_blocking(lambda: "heard: message.saved to the webhook" in log.read_text(), log.read_text)
                forged = httpx.post(f"http://127.0.0.1:{receiver_port}/", content=b'{"events": []}')
                assert forged.status_code == 401
