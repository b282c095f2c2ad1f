"""A plugin's tool that asks through Hermes's `tools.approval`: the person is asked, and their answer decides."""

import json
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

REMOTE = """
from agent.secret_scope import get_secret
from hermes_cli.commands import slack_subcommand_map
from tools.approval import check_dangerous_command, request_tool_approval


def run(args, **_):
    allowed = check_dangerous_command(args["command"], "ssh")
    if allowed["approved"] and "mail" in args["command"]:
        allowed = request_tool_approval("mail", "it leaves the house", rule_key="mail")
    if not allowed["approved"]:
        return allowed["message"]
    return f"ran {args['command']} {get_secret('NOT_THERE', 'none')} {slack_subcommand_map()['new']}"


def register(ctx):
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    ctx.register_tool(name="remote", toolset="remote", schema={"description": "far", "parameters": schema}, handler=run)
"""


def test_the_persons_answer_decides_about_what_does_not_plainly_read(tmp_path: Path) -> None:
    commands = {"look": "uptime", "clean": "rm -rf /srv", "spare": "reboot", "tell": "mail ann"}
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(
            *(
                {
                    "user": word,
                    "answers": [{"tool_calls": [{"name": "remote", "args": {"command": command}}]}, {"text": "done"}],
                }
                for word, command in commands.items()
            )
        )
        folder = gateway.home.plugins / "remote"
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text("name: remote\nversion: 1.0.0\n")
        (folder / "__init__.py").write_text(REMOTE)
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["remote"]}}))
        gateway.start()
        gateway.until(lambda: gateway.call("hooks.info", {"name": "plugin:remote"})["state"] == "loaded")

        def say(text: str, *answers: str) -> str:
            """Return the tool's result, after each question was answered."""
            said = gateway.say(text, text)
            for answer in answers:
                assert (said["status"], "May I run" in said["reply"]) == ("waiting", True), said
                said = gateway.say(answer, text)
            assert said["status"] == "ok", said
            shown = gateway.cli("sessions", "show", f"agent:main:terminal:dm:{text}", "--json").stdout
            return str([one["content"] for one in json.loads(shown)["entries"] if one["role"] == "tool"][-1])

        assert say("look") == "ran uptime none /new"
        assert say("clean", "yes") == "ran rm -rf /srv none /new"
        assert say("spare", "no").startswith("BLOCKED: the person did not allow it")
        assert say("tell", "yes", "yes") == "ran mail ann none /new"
