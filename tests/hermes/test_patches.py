"""The source of a hook or plugin shows its patches of Hermes, and if it does anything else."""

import pytest

from gateway.hermes.handler_source import has_answers
from gateway.hermes.patches import find_patches

RUNNER, NAME = "from gateway.run import GatewayRunner\n", "gateway.run.GatewayRunner"
PLUGIN, HOOK = "__init__.py", "handler.py"


def look(entry: str, source: str, *, starts_only: bool = False) -> tuple[list[str], bool]:
    found = find_patches("h", {entry: source.encode()}, entry, starts_only)
    return [patch.name for patch in found.patches], found.acts


# Sources of hooks, and what each patches.
ONLY_PATCHES = {
    f"{RUNNER}GatewayRunner.x = 1\ndef handle(e, c): pass": f"{NAME}.x",
    f"{RUNNER}setattr(GatewayRunner, 'x', 1)\ndef handle(e, c): pass": f"{NAME}.x",
    f"{RUNNER}def wrap(kind): kind.send = None\ndef handle(e, c): wrap(GatewayRunner)": f"{NAME}.send",
    f"class P:\n  def go(self):\n    {RUNNER}    GatewayRunner.x = 1\ndef handle(e, c): P().go()": f"{NAME}.x",
    "import gateway.run as run\ndef handle(e, c): run.START = 0": "gateway.run.START",
    "import sys\ndef handle(e, c):\n  m = sys.modules.get('gateway.run')\n  m.x = 1": "gateway.run.x",
    "import sys\ndef handle(e, c): sys.modules['gateway.run'] = None": "gateway.run",
    "import importlib\nm = importlib.import_module('gateway.delivery')\nm.x = 1\ndef handle(e, c): ...": (
        "gateway.delivery.x"
    ),
    "def cls():\n  from run_agent import AIAgent\n  return AIAgent\ndef handle(e, c):\n  a = cls()\n  a.chat = 1": (
        "run_agent.AIAgent.chat"
    ),
    "from unittest.mock import patch\nimport gateway\ndef handle(e, c): patch('gateway.run.x', 1).start()": (
        "gateway.run.x"
    ),
    "import gc, gateway.run\ndef handle(e, c):\n  for o in gc.get_objects(): o.x = 1": "what gc.get_objects finds",
}


@pytest.mark.parametrize(("source", "name"), ONLY_PATCHES.items())
def test_a_hook_that_only_patches_does_nothing_besides(source: str, name: str) -> None:
    assert look(HOOK, source) == ([name], False)


@pytest.mark.parametrize(
    "source",
    [
        "import httpx\ndef handle(e, c): httpx.post('u')",
        "def handle(e, c): open('f', 'w').write(c['message'])",
        "from tools.send_message_tool import send_message_tool as say\ndef handle(e, c): say({'message': 'up'})",
        "handle = make()",
        "@retry\ndef handle(e, c): pass",
    ],
)
def test_a_hook_that_does_something_besides_is_seen_to(source: str) -> None:
    assert look(HOOK, f"{RUNNER}GatewayRunner.x = 1\n{source}") == ([f"{NAME}.x"], True)


PROCESS = "the process by sys.addaudithook"
# Of hooks that patch what every program in Hermes's process uses.
ONLY_PATCH_PYTHON = {
    "import sys\ndef audit(e, a): raise OSError\nsys.addaudithook(audit)\ndef handle(e, c): ...": PROCESS,
    "from sys import addaudithook as add\ndef handle(e, c): add(lambda *a: open('x', 'w'))": PROCESS,
    "import subprocess\nclass Safe(subprocess.Popen):\n  def __init__(self, *a, **k): super().__init__(*a)\n"
    "def handle(e, c): subprocess.Popen = Safe": "subprocess.Popen",
    "import socket as s\ndef no(self, to): raise OSError(to)\ns.socket.connect = no\ndef handle(e, c): ...": (
        "socket.socket.connect"
    ),
    "import resource\ndef handle(e, c): resource.setrlimit(resource.RLIMIT_NPROC, (9, 9))": (
        "the process by resource.setrlimit"
    ),
    "import builtins\nreal = builtins.open\ndef mine(*a): return real(*a)\nsetattr(builtins, 'open', mine)\n"
    "def handle(e, c): ...": "builtins.open",
    "import os, functools\n@functools.wraps(os.system)\ndef no(c): return 1\nos.system = no\ndef handle(e, c): ...": (
        "os.system"
    ),
    "import httpx\ndef send(self, r): return None\nhttpx.Client.send = send\ndef handle(e, c): print(e)": (
        "httpx.Client.send"
    ),
    "from unittest import mock\ndef handle(e, c): mock.patch('subprocess.run', None).start()": "subprocess.run",
}


@pytest.mark.parametrize(("source", "name"), ONLY_PATCH_PYTHON.items())
def test_a_hook_that_only_patches_python_does_nothing_besides(source: str, name: str) -> None:
    assert look(HOOK, source) == ([name], False)


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.stdout = open('log', 'a')\ndef handle(e, c): print(e)",
        "import os\nos.environ['TOKENIZERS_PARALLELISM'] = 'no'\ndef handle(e, c): print(e)",
        "import requests\nrequests.adapters.DEFAULT_RETRIES = 3\ndef handle(e, c): requests.post('x')",
        "import subprocess\ndef handle(e, c):\n  done = subprocess.run(['x'])\n  done.mine = handle",
        "import socket\nsocket.setdefaulttimeout(3)\ndef handle(e, c): socket.create_connection(('x', 1))",
        "import sys\nsys.path.insert(0, '.')\ndef handle(e, c): ...",
    ],
)
def test_what_a_hook_sets_for_itself_is_no_patch(source: str) -> None:
    assert look(HOOK, source)[0] == []


def test_who_patches_python_and_guards_besides_acts() -> None:
    guard = "def g(**k): return {'action': 'block'}\ndef register(ctx): ctx.register_hook('pre_tool_call', g)"
    assert look(PLUGIN, f"import sys\nsys.addaudithook(print)\n{guard}") == ([PROCESS], True)
    assert look(PLUGIN, "import sys\ndef register(ctx): sys.addaudithook(print)") == ([PROCESS], False)


def test_what_one_that_runs_at_the_start_alone_writes_is_its_own_log() -> None:
    source = f"{RUNNER}GatewayRunner.x = 1\ndef handle(e, c): open('f', 'a').write('patched')"
    assert look(HOOK, source, starts_only=True) == ([f"{NAME}.x"], False)


FILTER = f"""
import asyncio, re, yaml
{RUNNER}
class Rules:
    def __init__(self, path): self.patterns = [re.compile(one) for one in yaml.safe_load(path.read_text())["drop"]]
    def drops(self, event): return any(one.search(event.text) for one in self.patterns)

async def handle(e, c):
    {{}}
    rules, before = Rules(PATH.expanduser()), GatewayRunner._handle_message
    async def filtered(self, event): return None if rules.drops(event) else await before(self, event)
    GatewayRunner._handle_message = filtered
    asyncio.get_running_loop().call_later(1, rules.reload)
"""


@pytest.mark.parametrize(
    ("does", "acts"),
    [
        ("pass", False),
        ("import urllib.request\n    urllib.request.urlopen(URL)", True),
        ("import os\n    os.system('wall up')", True),
        ("from tools.send_message_tool import send_message_tool\n    send_message_tool({})", True),
    ],
)
def test_who_reads_its_settings_at_the_start_and_patches_does_nothing_besides(does: str, acts: bool) -> None:
    source = FILTER.replace("{}", does, 1)
    assert look(HOOK, source, starts_only=True) == ([f"{NAME}._handle_message"], acts)
    assert look(HOOK, source)[1], "one that is called later may do anything with what it has read"


@pytest.mark.parametrize(
    ("source", "acts"),
    [
        ("def register(ctx): pass", False),
        ("def b(**k): return None\ndef register(ctx): ctx.register_hook('pre_verify', b)", False),
        ("def b(**k): return k\ndef register(ctx): ctx.register_hook('pre_verify', b)", True),
        ("def register(ctx): ctx.register_command('x', print)", True),
        ("def register(ctx): getattr(ctx, 'register_command')('x', print)", True),
        ("from .more import b\ndef register(ctx): ctx.register_hook('pre_verify', b)", True),
    ],
)
def test_a_plugin_acts_when_what_it_registers_does(source: str, acts: bool) -> None:
    assert look(PLUGIN, f"{RUNNER}GatewayRunner.x = 1\n{source}") == ([f"{NAME}.x"], acts)


def test_adapters_that_a_callback_is_handed_are_hermess() -> None:
    source = (
        "def b(event, gateway, **_):\n  gateway.adapters['x'].send = 1\ndef register(ctx): ctx.register_hook('y', b)"
    )
    assert look(PLUGIN, source) == ([f"{NAME}.adapters.send"], False)


@pytest.mark.parametrize(
    "source",
    [
        "from run_agent import AIAgent\ndef handle(e, c):\n  a = AIAgent()\n  a.mine = 1",
        "import tools\nfrom gateway.hooks import on\nclass A: pass\nA.x = 1\ndef handle(e, c): c.x = 1",
        "def handle(e, c): pass",
    ],
)
def test_what_belongs_to_the_hook_is_no_patch(source: str) -> None:
    assert look(HOOK, source)[0] == []


def test_only_code_that_is_imported_counts() -> None:
    patching = f"{RUNNER}GatewayRunner.x = 1".encode()
    files = {HOOK: b"import own\nimport gateway.run\ndef handle(e, c): pass", "scripts/more.py": patching}
    assert find_patches("h", files, HOOK).patches == ()
    assert find_patches("h", {**files, "own.py": patching}, HOOK).patches


@pytest.mark.parametrize(
    ("source", "more", "answers"),
    [
        ("def handle(e, c):\n  return dict(decision='deny')", "", True),
        ("async def handle(e, c):\n  x = {}\n  return x", "", True),
        ("from own import handle", "def handle(e, c): return judge(c)", True),
        ("from own import run as handle", "def run(e, c): print(c)\ndef other(): return 1", False),
        ("handle = lambda e, c: {'decision': 'deny'}", "", True),
        ("class H:\n  def __call__(self, e, c): return self.x\nhandle = H()", "", True),
        ("class H:\n  def __call__(self, e, c): print(c)\n  def y(self): return 1\nhandle = H()", "", False),
        ("def make():\n  def inner(e, c): return 1\n  return inner\nhandle = make()", "", True),
        ("globals()['handle'] = lambda e, c: c", "", True),
        ("def helps(): return 1\ndef handle(e, c):\n  helps()\n  return", "", False),
        ("def handle(e, c):\n  def inner(): return 1\n  return None", "", False),
        ("def handle(e, c)\n  return {}", "", True),
        ("import functools\n@functools.cache\ndef handle(e, c): print(c)", "", False),
        ("def handle(e, c):\n  with open('x') as handle: handle.write(c)", "", False),
        ("def handle(e, c): print(globals()['N'], 'N' in globals())\nimport httpx", "", False),
        ("from elsewhere import handle", "def handle(e, c): pass", True),
        ("from elsewhere import make\nhandle = make('x')", "", True),
        ("import elsewhere\nhandle = elsewhere.handle", "def handle(e, c): pass", True),
        ("def handle(e, c): pass\nfrom elsewhere import *", "", True),
        ("from elsewhere import wraps\n@wraps\ndef handle(e, c): pass", "", True),
        ("def handle(e, c): pass\ndef no(e, c): return 1\nglobals()['handle'] = no", "", True),
        ("def handle(e, c): pass\ndef no(e, c): return 1\nglobals().update(handle=no)", "", True),
        ("def handle(e, c): pass\nexec(compile(open('x').read(), 'x', 'exec'))", "", True),
        ("import sys, x\ndef handle(e, c): pass\nsetattr(sys.modules[__name__], 'handle', x.no)", "", True),
        ("def handle(e, c): pass\ndef no(e, c): return 1\nhandle: object = no", "", True),
        ("def handle(e, c): pass\ndef no(e, c): return 1\nhandle, other = no, 1", "", True),
        ("def handle(e, c)\n  return None", "", False),
    ],
)
def test_a_handler_answers_when_its_source_returns_something(source: str, more: str, answers: bool) -> None:
    assert has_answers({"handler.py": source.encode(), "own.py": more.encode()}) is answers
