"""The webhook of a hook: there as long as the hook is, told to it alone, and shown with its address and its secret."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.config.webhooks import WebhookKeys
from gateway.hooks.manifests.installed import HookGrants, list_missing_grants
from gateway.hooks.manifests.manifest import Manifest, read_manifest
from gateway.testing import GatewayProcess
from tests.web.signers import TOKEN, body_of, sign_token
from tests.web.test_webhooks import post, url_of

pytestmark = pytest.mark.process

MANIFEST = "webhook: {secret_env: TOKEN_SECRET, verify: token}\n"
SETTINGS = """
web: {trusted_proxies: [127.0.0.1]}
webhooks:
  mine: {secret_env: NONE, verify: token}
"""
HANDLER = 'def handle(name, context):\n    print("told", name, context["delivery_id"])\n'
SUBMITS = """
async def handle(name, context):
    await context.gateway.submit("work", session="work")
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("hooks") / "home") as gateway:
        gateway.script({"user": "", "text": "Done."}, settings=SETTINGS)
        gateway.environ["TOKEN_SECRET"] = TOKEN
        gateway.start()
        yield gateway


def info_of(gateway: GatewayProcess, name: str) -> dict[str, Any]:
    return dict(gateway.call("hooks.info", {"name": name}))


def is_loaded(gateway: GatewayProcess, name: str) -> bool:
    return (name, "loaded") in {(one["name"], one["state"]) for one in gateway.call("hooks.list")["hooks"]}


def call(gateway: GatewayProcess, hook: str, name: str) -> int:
    body = body_of(name)
    return post(gateway, hook, body, sign_token(body, name=name)).status


def test_it_comes_and_goes_with_the_hook(gateway: GatewayProcess) -> None:
    assert call(gateway, "builds", "early") == 401
    folder = gateway.add_hook("builds", {"HOOK.yaml": MANIFEST, "handler.py": HANDLER})
    gateway.until(lambda: call(gateway, "builds", "first") == 202)
    gateway.until(lambda: info_of(gateway, "builds")["calls"] == 1)
    assert "told webhook:builds first" in gateway.cli("hooks", "logs", "builds").stdout
    assert info_of(gateway, "builds")["delivery"] == "durable"
    gateway.call("hooks.disable", {"name": "builds"})
    assert call(gateway, "builds", "off") == 401
    gateway.call("hooks.enable", {"name": "builds"})
    gateway.until(lambda: call(gateway, "builds", "on") == 202)
    folder.rename(folder.parent.parent / "builds-away")
    gateway.until(lambda: call(gateway, "builds", f"gone {time.monotonic()}") == 401)


def test_its_address_and_its_secret_are_shown(gateway: GatewayProcess) -> None:
    gateway.add_hook("shown", {"HOOK.yaml": MANIFEST, "handler.py": HANDLER})
    gateway.add_hook("mine", {"HOOK.yaml": MANIFEST, "handler.py": HANDLER})
    gateway.until(lambda: call(gateway, "shown", "x") == 202)
    url = f"{url_of(gateway)}/webhooks/shown"
    assert info_of(gateway, "shown")["webhook"] == f"POST {url} (token, TOKEN_SECRET is set)"
    assert f"webhook      POST {url} (token, TOKEN_SECRET is set)" in gateway.cli("hooks", "info", "shown").stdout
    assert f"- shown: POST {url} (token, TOKEN_SECRET is set)" in gateway.cli("hooks", "list").stdout
    gateway.until(lambda: is_loaded(gateway, "mine"))
    assert "cannot be called: NONE is not set" in info_of(gateway, "mine")["webhook"], "the configuration's counts"
    assert call(gateway, "mine", "x") == 401
    found = {one["name"]: one for one in gateway.call("status")["webhooks"]}
    assert (found["shown"]["origin"], found["shown"]["taken"]) == ("hook shown", 1)
    assert found["mine"]["origin"] == "configuration, in place of what hook mine says"
    assert found["mine"]["refused"] == 0


@pytest.mark.row("T17")
def test_what_a_hook_does_because_of_it_is_done_with_a_guests_rights(gateway: GatewayProcess) -> None:
    gateway.add_hook("submits", {"HOOK.yaml": f"{MANIFEST}uses: [submit]\n", "handler.py": SUBMITS})
    gateway.add_hook(
        "sees",
        {
            "HOOK.yaml": "events: [agent:start]\nwhen: {session_key: 'agent:main:internal:dm:work'}\n",
            "handler.py": 'def handle(name, context):\n    print("as", context["role"])\n',
        },
    )
    gateway.until(lambda: is_loaded(gateway, "sees"))
    gateway.until(lambda: call(gateway, "submits", "one") == 202)
    gateway.until(lambda: info_of(gateway, "sees")["calls"] == 1)
    assert "as guest" in gateway.cli("hooks", "logs", "sees").stdout


def test_what_arrives_while_a_hook_fails_is_told_once_it_works(gateway: GatewayProcess) -> None:
    folder = gateway.add_hook("mended", {"HOOK.yaml": MANIFEST, "handler.py": "import nothing_of_that_name\n"})
    gateway.until(lambda: call(gateway, "mended", "waits") == 202)
    (folder / "handler.py").write_text(HANDLER)
    gateway.until(lambda: info_of(gateway, "mended")["calls"] == 1)
    assert "told webhook:mended waits" in gateway.cli("hooks", "logs", "mended").stdout


def test_what_the_configuration_says_in_place_of_a_hook_is_said(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("webhooks: {builds: {secret_env: OTHER, verify: github}}\n")
        gateway.add_hook("builds", {"HOOK.yaml": MANIFEST, "handler.py": HANDLER})
        gateway.start()
        gateway.until(lambda: info_of(gateway, "builds")["state"] == "loaded")
        said = "configuration, in place of what hook builds says"
        assert [one["origin"] for one in gateway.call("status")["webhooks"]] == [said]
        for words in (("hooks", "list"), ("hooks", "info", "builds")):
            assert said in gateway.cli(*words).stdout


def test_a_folder_whose_name_is_no_address_is_told_so(tmp_path: Path) -> None:
    folder = tmp_path / "my builds"
    folder.mkdir()
    (folder / "HOOK.yaml").write_text(MANIFEST)
    (found,) = map(str, read_manifest(folder).findings)
    wanted = (
        "my builds/HOOK.yaml:1:10: error: the folder's name `my builds` cannot be part of the address of a webhook; "
    )
    assert found == f"{wanted}name it by letters, digits, - and _, 64 at the most"
    (folder / "HOOK.yaml").write_text("webhook: {secret_env: X, verify: hub}\n")
    assert "HOOK.yaml:1:34: error: `webhook.verify` cannot have this value" in str(read_manifest(folder).findings[1])
    fine = tmp_path / "builds"
    fine.mkdir()
    (fine / "HOOK.yaml").write_text(f"{MANIFEST}delivery: memory\n")
    manifest = read_manifest(fine).required(fine)
    assert (manifest.events, manifest.delivery) == (("webhook:builds",), "memory")


def test_an_installed_hook_has_the_webhook_that_was_agreed_to() -> None:
    keys = WebhookKeys(secret_env="A_SECRET", verify="github")
    manifest = Manifest(folder="builds", name="builds", events=("webhook:builds",), webhook=keys)
    assert list(list_missing_grants(manifest, HookGrants())) == ["webhook: github with A_SECRET"]
    assert list(list_missing_grants(manifest, HookGrants(webhook=keys))) == []
