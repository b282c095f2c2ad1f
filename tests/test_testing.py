"""The tools for tests of hook authors, used as they use them."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.errors import GatewayError, HookError
from gateway.hooks import Deny
from gateway.testing import RecordingHook, call, gateway_in

CALL = {"tool_calls": [{"name": "calculate", "args": {"expression": "1 + 1"}}]}
SHOUT = {
    "HOOK.yaml": "intercepts: [agent:end]\n",
    "handler.py": "def handle(event_type, context):\n    context['response_full'] = context['response_full'].upper()\n",
}


@pytest.mark.process
async def test_a_gateway_in_the_tests_own_process_has_a_scripted_model_and_takes_functions_as_hooks(tmp_path):
    turn = {"user": "sum", "answers": [CALL, {"text": "done"}]}
    async with gateway_in(tmp_path / "home", turn, hooks={"shout": SHOUT}) as gateway:
        heard = RecordingHook(gateway.registry, "tool:*")
        gateway.registry.on("tool:before", lambda event: Deny("no sums"), when={"tool": "calculate"})
        said = await gateway.say("sum, please")
        assert (said["reply"], said["status"]) == ("DONE", "ok")
        after = await heard.until("tool:after")
        assert (heard.names, after["denied"]) == (["tool:before", "tool:after"], "no sums")
        heard.remove()
        await gateway.say("sum again")
        await gateway.registry.settled()
        assert len(heard.events) == 2
        with pytest.raises(GatewayError, match="no node:after within 0 s; there was tool:before, tool:after"):
            await heard.until("node:after", patience=0.01)


@pytest.mark.process
async def test_without_a_script_it_is_the_demo_and_settings_stand_beside(tmp_path):
    async with gateway_in(tmp_path / "home", settings="agents: {main: {tools: [time]}}\n") as gateway:
        assert "I do not know" in (await gateway.say("what is 2 + 2"))["reply"]
        assert "It is" in (await gateway.say("what time is it"))["reply"]


GREET = {
    "HOOK.yaml": "intercepts: [message:received, tool:before]\nevents: [agent:end]\nuses: [store, send]\n"
    "options: {word: hello}\n",
    "handler.py": """
from gateway.hooks import Deny, on


@on("message:received")
def greet(context):
    count = context.gateway.store.get("count", 0) + 1
    context.gateway.store.set("count", count)
    context["text"] = f"{context.options['word']} {count}"
    context["platform"] = "elsewhere"


@on("tool:before")
async def guard(context):
    await context.gateway.send("home", "a tool")
    if context.ask("May it?", name="may") != "yes":
        raise Deny("they said no")


@on("agent:end")
def fall(context):
    raise KeyError(context.gateway.submit("work"))
""",
}


def put(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o700)
    return folder


def test_a_hook_is_called_plainly_and_judged_as_the_gateway_does(tmp_path):
    folder, store = put(tmp_path / "greet", GREET), {"count": 1}
    trial = call(folder, "message:received", {"text": "x"}, options={"word": "good day"}, store=store)
    assert (trial.changed, store) == ({"text": "good day 2"}, {"count": 2})
    assert trial.remarks == ("cannot change 'platform' at message:received; that is left as it was",)
    asked = call(folder, "tool:before")
    assert (asked.result["decision"], asked.result["prompt"]) == ("ask", "May it?")
    refused = call(folder, "tool:before", answers={"may": "no"})
    assert (refused.result["decision"], refused.result["message"]) == ("deny", "they said no")
    assert refused.asked == ({"verb": "send", "to": "home", "text": "a tool"},)
    assert call(folder, "tool:before", answers={"may": "yes"}).result is None


async def test_a_hook_is_called_plainly_from_a_coroutine_too(tmp_path):
    folder = put(tmp_path / "greet", GREET)
    assert call(folder, "message:received", {"text": "x"}).changed == {"text": "hello 1"}
    assert call(folder, "tool:before", answers={"may": "yes"}).result is None
    with pytest.raises(RuntimeError, match="may not submit") as raised:
        call(folder, "agent:end")
    assert any(str(frame.path).endswith("handler.py") for frame in raised.traceback)


def test_what_a_handler_raises_comes_out_of_a_plain_call_with_its_line(tmp_path):
    folder = put(tmp_path / "greet", GREET)
    with pytest.raises(RuntimeError, match=r"may not submit: add `uses: \[submit\]`") as raised:
        call(folder, "agent:end")
    assert any(str(frame.path).endswith("handler.py") for frame in raised.traceback)
    (folder / "handler.py").write_text("def handle(event_type, context):\n    return object()\n")
    with pytest.raises(TypeError, match="not JSON"):
        call(folder, "message:received")
    (folder / "handler.py").write_text("def handle(event_type, context):\n    return {'decision': 'denny'}\n")
    with pytest.raises(HookError, match="denny"):
        call(folder, "message:received")
    (folder / "HOOK.yaml").write_text("intercept: [message:received]\n")
    with pytest.raises(HookError, match="no event is named"):
        call(folder, "message:received")
    with pytest.raises(HookError, match="is not a hook"):
        call(tmp_path / "nothing", "message:received")


@pytest.mark.process
def test_programs_are_called_plainly_too(tmp_path):
    once = put(
        tmp_path / "once",
        {
            "HOOK.yaml": 'intercepts: [tool:before]\ncommand: ["./hook.sh"]\nprotocol: oneshot\n',
            "hook.sh": '#!/bin/sh\ncase "$(cat)" in *.env*) echo "private" >&2; exit 2 ;; esac\n',
        },
    )
    assert call(once, "tool:before", {"args": {"command": "ls"}}).result is None
    refused = call(once, "tool:before", {"args": {"command": "cat .env"}})
    assert refused.result == {"decision": "deny", "message": "private"}
    assert refused.output.endswith("private\n")
    lasting = put(
        tmp_path / "lasting",
        {
            "HOOK.yaml": "intercepts: [message:received]\ncommand: [python3, hook.py]\n",
            "hook.py": "import json, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n"
            "    answer = {'text': asked['params']['text'].upper()}\n"
            "    print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': answer}), flush=True)\n",
        },
    )
    assert call(lasting, "message:received", {"text": "hello"}).changed == {"text": "HELLO"}
    (lasting / "HOOK.yaml").write_text("intercepts: [message:received]\ncommand: [no-such-program]\n")
    with pytest.raises(HookError, match="no-such-program cannot be started"):
        call(lasting, "message:received")


TESTS = """
from gateway.testing import call


def test_plainly(hook_folder):
    assert call(hook_folder, "agent:end").changed


def test_really(hermes_gateway, hook_folder):
    hermes_gateway.add_hook("shout", hook_folder)
    hermes_gateway.script({"user": "hello", "text": "good morning"})
    hermes_gateway.start()
    assert hermes_gateway.say("hello")["reply"] == "GOOD MORNING"
"""


@pytest.mark.process
def test_tests_in_a_repository_of_somebody_else_have_the_fixtures(tmp_path):
    folder = put(tmp_path / "shout", SHOUT)
    put(folder / "tests", {"test_shout.py": TESTS})
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr


def test_whoever_runs_pytest_for_something_else_loads_nothing_of_the_gateway():
    script = "import sys, gateway.testing.plugin; print([name for name in sys.modules if name.startswith('gateway.')])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['gateway.testing', 'gateway.testing.plugin']"
