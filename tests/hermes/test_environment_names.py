"""Variables that are read by names which the source only puts together: what to write is said until it is written."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.hermes.environment_source import find_unknown_variables
from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants

GUARD = """
def guard(tool_name, args, **_):
    return {"action": "block", "message": "denied word"} if any(one in str(args) for one in DENIED) else None

def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
"""
PLUGINS = {
    "prefixed": "import os\nPREFIX = 'GUARDX'\ndef setting(name, default=''):\n"
    "    return os.environ.get(f'{PREFIX}_{name}', default)\n"
    "DENIED = [one for one in setting('DENY').split(',') if one]\n",
    "gathers": "import os\nFOUND = {key[6:]: value for key, value in os.environ.items() if key.startswith('VAULT_')}\n"
    "DENIED = FOUND.get('WORDS', '').split()\n",
}
NAMES = {
    "joined": ("os.getenv('A_' + 'B')", ("A_B",), (), True),
    "of a helper": ("def get(n): return os.environ['X_' + n]\nget('A'); get('B')", (), ("X_",), True),
    "in capitals": ("for n in ('a', 'b'): os.environ.get(f'X_{n.upper()}')", (), ("X_",), True),
    "a beginning": ("def get(n): return os.environ.get(f'GUARD_{n}')\nget(input())", (), ("GUARD_",), True),
    "a loop": ("for k in os.environ:\n  if k.startswith('A_'): print(k)", (), ("A_",), True),
    "a copy": ("E = dict(os.environ)\nE.get('A_' + word())", (), ("A_",), True),
    "formatted": ("os.environ['A_%s' % word()]; os.environ['B_{}'.format(word())]", (), ("A_", "B_"), True),
    "settings": (
        "class S(BaseSettings):\n  model_config = SettingsConfigDict(env_prefix='G_')\n  mode: str = ''",
        ("G_MODE",),
        (),
        True,
    ),
    "a secret of its own": ("os.environ[word()]", (), (), False),
}
PLAIN = ("os.environ['HOME']", "os.getenv('A')", "run(env={**os.environ, 'A': '1'})", "print({}.get('A' + x))")


@pytest.mark.parametrize("how", NAMES)
def test_what_is_seen_of_the_names(how: str) -> None:
    source, *expected = NAMES[how]
    found = find_unknown_variables("p", {"__init__.py": f"import os\n{source}\n".encode()})
    assert found
    assert [found.names, found.beginnings, found.is_seen] == expected


@pytest.mark.parametrize("source", PLAIN)
def test_what_stands_there_is_not_told_of(source: str) -> None:
    assert find_unknown_variables("p", {"__init__.py": f"import os\n{source}\n".encode()}) is None


def furnish(gateway: GatewayProcess, plugins: Mapping[str, str]) -> None:
    for name, source in plugins.items():
        folder = gateway.home.plugins / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(source + GUARD)
        (folder / "plugin.yaml").write_text(f"name: {name}\n")
    gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": [*plugins]}}))
    gateway.home.env.write_text("GUARDX_DENY=launch,start\nVAULT_WORDS=launch\n")
    gateway.home.env.chmod(0o600)


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "variable", "place"),
    [("prefixed", "GUARDX_DENY", "__init__.py:4:12"), ("gathers", "VAULT_WORDS", "__init__.py:2:9")],
)
def test_everybody_says_what_to_write_until_it_is_written(tmp_path: Path, name: str, variable: str, place: str) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(wants("launch", "remember", text="launch"))
        furnish(gateway, {name: PLUGINS[name]})
        gateway.start()
        gateway.say("launch")
        assert last_result(gateway) == "Remembered: launch"
        line = f"hooks: {{{name}: {{env: [{variable}]}}}}"
        told = f"write `{line}` into config.yaml"
        for said in (("hooks", "list"), ("hooks", "check", name), ("hooks", "info", name), ("doctor", "--hermes")):
            shown = gateway.cli(*said).stdout
            assert told in shown, said
            assert f"{name}/{place}" in shown, said
        rows = json.loads(gateway.cli("doctor", "--hermes", "--json").stdout)["hermes"]
        assert [row["verdict"] for row in rows if row["name"] == name] == ["degrades"]
        gateway.configure(f"{gateway.home.config.read_text()}{line}\n")
        _, _, logged = gateway.stop()
        assert logged.count(told) == 1
        gateway.start()
        gateway.say("launch")
        assert "denied word" in last_result(gateway)
        for said in (("hooks", "list"), ("hooks", "check", name), ("hooks", "info", name), ("doctor", "--hermes")):
            assert "only puts together" not in gateway.cli(*said).stdout, said
