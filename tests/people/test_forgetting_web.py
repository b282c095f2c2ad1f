"""A person is forgotten who came by the port: at the page's chat, by a program, or as a webhook."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.people.test_forgetting import find_in_home
from tests.web.signers import TOKEN
from tests.web.test_visitors import come_as, url_of
from tests.web.visits import Visit, send

pytestmark = pytest.mark.process

SECRET, OTHER = "bicyclegreencanary", "anotherpersonscanary"
SETTINGS = """
web: {identity: X-Person, trusted_proxies: [127.0.0.1], people: {ann: user, ben: user}}
webhooks: {issues: {secret_env: CALLER, verify: token, template: "Look at {text}"}}
"""
DURABLE = "events: [message:received, agent:end, 'webhook:*']\ndelivery: durable\n"
JSON = "application/json"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        remembers = [{"tool_calls": [{"name": "remember", "args": {"text": SECRET}}]}, {"text": f"I keep {SECRET}."}]
        gateway.script(
            {"user": "remember", "answers": remembers}, *({"user": "", "text": "Heard."},) * 20, settings=SETTINGS
        )
        gateway.environ["CALLER"] = TOKEN
        gateway.add_hook("hears", {"HOOK.yaml": DURABLE, "handler.py": "def handle(event_type, context):\n    pass\n"})
        gateway.start()
        yield gateway


def call(gateway: GatewayProcess, key: str, word: str, **more: Any) -> Visit:
    asked = {"model": "main", "messages": [{"role": "user", "content": f"say {word}"}], **more}
    return post(gateway, "/v1/chat/completions", asked, key)


def post(gateway: GatewayProcess, path: str, body: Any, key: str) -> Visit:
    bearer = {"Authorization": f"Bearer {key}", "Content_Type": JSON}
    return send(url_of(gateway), path, "POST", json.dumps(body).encode(), **bearer)


def forget(gateway: GatewayProcess, *people: str) -> list[dict[str, Any]]:
    done = gateway.cli("people", "forget", *people, "--yes", "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["forgotten"]
    return found


def test_nothing_is_left_of_who_came_by_the_port(gateway: GatewayProcess) -> None:
    key = str(gateway.call("keys.create", {"name": "script", "role": "user", "agent": "main"})["key"])
    for name, word in (("ann", SECRET), ("ben", OTHER)):
        person = come_as(gateway, name)
        about = f"id=file-{name}-0001&name=note.txt&type=text/plain"
        kept = person.post(f"/chat/file?{about}", word.encode(), "application/octet-stream")
        assert kept.status == 200, kept
        person.write(f"hello {word}", files=[json.loads(kept.body)])
        person.see("Heard.")
        assert call(gateway, key, word, user=name).status == 200
        assert call(gateway, key, word, user=name, stream=True).status == 200
    come_as(gateway, "ann").write(f"remember {SECRET}")
    come_as(gateway, "ann").see(f"I keep {SECRET}.")
    assert call(gateway, key, SECRET).status == 200  # nobody's but the program's
    assert post(gateway, "/webhooks/issues", {"text": SECRET}, TOKEN).status == 202
    gateway.until(lambda: any(row["name"] == "webhook:issues" for row in gateway.call("usage")["rows"]))
    assert find_in_home(gateway, SECRET)

    gone = forget(gateway, "web:ann", "api:script:ann", "api:script", "webhook:issues")
    assert [one["conversations"] > 0 for one in gone] == [True] * 4, gone
    assert (gone[0]["notes"], gone[0]["files"]) == (1, 1)
    gateway.stop()
    assert not (left := find_in_home(gateway, SECRET)), left
    assert find_in_home(gateway, OTHER)

    gateway.start()
    ben = come_as(gateway, "ben")
    assert [one.data["text"] for one in ben.see("Heard.") if one.data["by"] == "person"] == [f"hello {OTHER}"]
    assert come_as(gateway, "ann").ask("/chat/list") == {"chats": []}
    names = {row["name"] for row in gateway.call("usage")["rows"]}
    assert {"web:ben", "api:script:ben"} <= names
    assert not {"web:ann", "api:script:ann", "api:script", "webhook:issues"} & names
    assert {one["pseudonym"] for one in gone} <= names
