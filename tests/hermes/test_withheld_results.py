"""A plugin that removes parts of results, and fails: the hidden parts reach no one."""

import json
from collections.abc import Iterator

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants

pytestmark = pytest.mark.process

KEY = "sk-abc123"
BEGIN = "import json, os\n\n"
# Each gives up in a way of its own when the command says its name.
PLUGINS = {
    "raises": """
def transform(tool_name, args, result, **_):
    if "raises" in args["command"]:
        raise ValueError(f"what is this: {result}")


def register(ctx):
    ctx.register_hook("transform_tool_result", transform)
""",
    "half-written": """
class Cleaner:
    def __call__(self, tool_name, args, result, **_):
        data = json.loads(result)
        if "half-written" in args["command"]:
            return {**data, "output": ""}
        return None


def register(ctx):
    ctx.register_hook("transform_tool_result", Cleaner())
""",
    "gone": """
def transform(command, output, returncode, **_):
    if "gone" in command:
        os._exit(7)
    return output.upper() if "loud" in command else None


def register(ctx):
    ctx.register_hook("transform_terminal_output", transform)
""",
    "watches": """
def after(tool_name, args, result, **_):
    raise KeyError("no ledger")


def transform(tool_name, args, result, **_):
    if "watches" in args["command"]:
        return json.dumps({**json.loads(result), "output": "[clean]"})


def register(ctx):
    ctx.register_hook("post_tool_call", after)
    ctx.register_hook("transform_tool_result", transform)
""",
    "let-off": """
def transform(tool_name, args, result, **_):
    if "let-off" in args["command"]:
        raise ValueError("never mind")


def register(ctx):
    ctx.register_hook("transform_tool_result", transform)
""",
}
BROKEN = """
from no_such_package import clean


def register(ctx):
    ctx.register_hook("transform_tool_result", lambda result, **_: clean(result))
"""
SCRIPT = tuple(wants(name, "shell", command=f"echo {KEY} {name}") for name in (*PLUGINS, "plain"))


def add_plugin(gateway: GatewayProcess, name: str, source: str) -> None:
    folder = gateway.home.plugins / name
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(f"name: {name}\n")
    (folder / "__init__.py").write_text(BEGIN + source)


def settings(*names: str) -> str:
    return json.dumps({"plugins": {"enabled": names}})


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        gateway.script(*SCRIPT, settings="tools: {shell: allow}\nhooks: {let-off: {on_error: skip}}\n")
        for name, source in PLUGINS.items():
            add_plugin(gateway, name, source)
        gateway.home.hermes_config.write_text(settings(*PLUGINS))
        gateway.start()
        gateway.until(lambda: {gateway.call("hooks.info", {"name": name})["state"] for name in PLUGINS} == {"loaded"})
        yield gateway


def told_of(gateway: GatewayProcess, name: str) -> str:
    return "\n".join(one for one in gateway.call("status")["attention"] if f"hook {name} " in one)


@pytest.mark.parametrize("name", ["raises", "half-written", "gone"])
def test_what_it_could_not_look_at_is_withheld(gateway: GatewayProcess, name: str) -> None:
    gateway.say(name, name)
    left = last_result(gateway, name)
    assert KEY not in left
    assert left.startswith(f"This call was made; what it gave is withheld. plugin:{name} guards this and failed")
    assert f"to see more: hermes-gateway hooks info {name}" in left
    assert f"hooks.{name}.on_error: skip in config.yaml" in left
    gateway.until(lambda: "tool:after was denied" in told_of(gateway, name))  # once it runs again


def test_why_it_failed_is_for_its_owner_alone(gateway: GatewayProcess) -> None:
    gateway.say("half-written", "why")
    assert "a dict, not a text" not in last_result(gateway, "why")
    assert "it answered a dict, not a text" in gateway.cli("hooks", "info", "half-written").stdout


def test_a_result_that_it_can_look_at_passes(gateway: GatewayProcess) -> None:
    gateway.say("plain", "plain")
    assert last_result(gateway, "plain") == f"{KEY} plain"


def test_who_only_looks_on_and_fails_withholds_nothing(gateway: GatewayProcess) -> None:
    gateway.say("watches", "watches")
    assert last_result(gateway, "watches") == "[clean]"
    assert "KeyError: 'no ledger'" in gateway.cli("hooks", "logs", "watches").stdout


def test_a_word_in_the_configuration_lets_results_pass(gateway: GatewayProcess) -> None:
    gateway.say("let-off", "let-off")
    assert last_result(gateway, "let-off") == f"{KEY} let-off"
    assert "went on without its decision" in told_of(gateway, "let-off")


def test_while_it_is_broken_results_are_withheld_and_the_reason_says_what_helps(gateway: GatewayProcess) -> None:
    add_plugin(gateway, "unfit", BROKEN)
    gateway.cli("hooks", "enable", "unfit")
    gateway.until(lambda: gateway.call("hooks.info", {"name": "unfit"})["state"] == "broken")
    gateway.say("plain", "broken")
    left = last_result(gateway, "broken")
    assert KEY not in left
    assert "plugin:unfit guards this and cannot answer: it is broken" in left
    assert "hermes-gateway hooks deps unfit no_such_package" in left
    gateway.cli("hooks", "disable", "unfit")
    gateway.until(lambda: gateway.call("hooks.info", {"name": "unfit"})["state"] == "disabled")
    gateway.say("plain", "well")
    assert last_result(gateway, "well") == f"{KEY} plain"
