"""A plugin without a guard disables no tool, and a guard registered before `register()` raised stays in force."""

from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants
from tests.hermes.test_unread_guards import add_plugin, enable, find_hook, keep, script

pytestmark = pytest.mark.process

HALF = """
def guard(tool_name, args, **_):
    return {"action": "block", "message": "half says no"} if args.get("content") == "secret" else None

def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
    raise RuntimeError("the rest needs what is not there")
"""
NOT_YET = HALF.replace('    ctx.register_hook("pre_tool_call", guard)\n    raise', "    raise").replace(
    "not there", 'not there")\n    ctx.register_hook("pre_tool_call", guard)\n    print("'
)
NETWORK = """
import no_such_network_library

def register(ctx):
    for name in no_such_network_library.EVENTS:
        ctx.register_hook(name, no_such_network_library.handle)
    ctx.register_platform(name="pigeons")
"""
ENDS = """
import os

def guard(tool_name, args, **_):
    if args.get("content") == "end":
        os._exit(0)

def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
"""


def test_what_a_plugin_registered_before_it_raised_is_in_force_and_needs_attention(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        script(gateway, ["plain", "secret"])
        add_plugin(gateway, "half", HALF)
        enable(gateway, "half")
        gateway.start()
        assert keep(gateway, "secret") == "half says no"
        assert keep(gateway, "plain") == "Remembered: plain"
        (said,) = [one for one in gateway.call("status")["attention"] if "half" in one]
        assert "register() raised RuntimeError: the rest needs what is not there" in said


def test_one_that_raised_before_it_registered_its_guard_denies(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        script(gateway, ["plain"])
        add_plugin(gateway, "late", NOT_YET)
        enable(gateway, "late")
        gateway.start()
        assert "late guards this and" in keep(gateway, "plain")


def test_a_network_that_cannot_start_disables_no_tool(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        script(gateway, ["plain"])
        add_plugin(gateway, "network", NETWORK)
        (gateway.home.plugins / "network" / "plugin.yaml").write_text("name: network\nkind: platform\n")
        enable(gateway, "network")
        gateway.start()
        gateway.until(lambda: find_hook(gateway, "network")["state"] == "broken")
        assert keep(gateway, "plain") == "Remembered: plain"


def test_a_guard_that_ends_its_process_has_failed(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        script(gateway, ["plain", "end"])
        add_plugin(gateway, "ends", ENDS)
        enable(gateway, "ends")
        gateway.start()
        assert keep(gateway, "plain") == "Remembered: plain"
        assert "ends guards this and failed" in keep(gateway, "end")


READS = """
def guard(tool_name, args, **_):
    if tool_name == "read_file" and "secret" in args["path"]:
        return {"action": "block", "message": "nobody reads that"}

def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
"""


def test_a_guard_of_reads_is_asked_about_each_way_of_a_file_to_a_person(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(
            wants("send it", "send_file", path="secret.txt"),
            {"user": "name it", "answers": [{"text": "here\nMEDIA:secret.txt\nMEDIA:other.txt"}]},
        )
        add_plugin(gateway, "reads", READS)
        enable(gateway, "reads")
        gateway.start()
        gateway.say("send it", "sent")
        assert last_result(gateway, "sent") == "nobody reads that"
        said = gateway.say("name it", "named")["reply"]
        assert "[the file secret.txt is not sent: nobody reads that]" in said
        assert "[the file other.txt is not sent: it is not there" in said
