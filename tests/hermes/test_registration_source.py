"""A plugin shows which hooks it registers in its text; where that is not certain, the place is named."""

import pytest

from gateway.hermes.registration_source import RegistrationSource, read_registrations

SEEN = {
    "in plain sight": ("def register(ctx):\n    ctx.register_hook('pre_tool_call', f)\n", "pre_tool_call"),
    "by its keyword": ("def register(ctx):\n    ctx.register_hook(hook_name='a', callback=f)\n", "a"),
    "by an object of its own": (
        (
            "class P:\n    def __init__(self, ctx):\n        self.ctx = ctx\n    def go(self):\n"
            "        self.ctx.register_hook('a', self.f)\ndef register(ctx):\n    P(ctx).go()\n"
        ),
        "a",
    ),
    "by an object that is there before": (
        (
            "class P:\n    def attach(self, ctx):\n        ctx.register_hook('a', self.f)\nP1 = P()\n"
            "def register(ctx):\n    P1.attach(ctx)\n"
        ),
        "a",
    ),
    "later, from a thread": (
        (
            "import threading\ndef register(ctx):\n    def late():\n        ctx.register_hook('a', f)\n"
            "    threading.Timer(1, late).start()\n"
        ),
        "a",
    ),
    "a callback that is given ctx": (
        (
            "from functools import partial\ndef f(ctx, **kw):\n    print(ctx)\n"
            "def register(ctx):\n    ctx.register_hook('a', partial(f, ctx))\n"
        ),
        "a",
    ),
    "it asks before": (
        "def register(ctx):\n    if hasattr(ctx, 'register_hook'):\n        ctx.register_hook('a', f)\n",
        "a",
    ),
    "no hooks at all": ("def register(ctx):\n    ctx.register_tool('t', 's', {}, f)\n", ""),
}
UNKNOWN = {
    "a constant": "HOOK = 'pre_' + 'tool_call'\ndef register(ctx):\n    ctx.register_hook(HOOK, f)\n",
    "a table": "TABLE = {'a': f}\ndef register(ctx):\n    for n, f in TABLE.items():\n"
    "        ctx.register_hook(n, f)\n",
    "the beginning of a name": "import sys\ndef register(ctx):\n    ctx.register_hook(sys.argv[0] + '_tool_call', f)\n",
    "what functions are called": "def register(ctx):\n    for n, f in list(globals().items()):\n"
    "        if n.startswith('hook_'):\n            ctx.register_hook(n[5:], f)\n",
    "methods by their names": "class P:\n    def on_x(self): pass\ndef register(ctx):\n    for n in dir(P):\n"
    "        ctx.register_hook(n.removeprefix('on_'), getattr(P, n))\n",
    "a list that grows": "HOOKS = []\ndef hook(n):\n    def d(f):\n        HOOKS.append((n, f))\n        return f\n"
    "    return d\ndef register(ctx):\n    for n, f in HOOKS:\n        ctx.register_hook(n, f)\n",
    "a table that is changed": "T = {'a': f}\nT[word()] = g\ndef register(ctx):\n    for n in T:\n"
    "        ctx.register_hook(n, f)\n",
    "a file": "import json\ndef register(ctx):\n    for n in json.load(open('x')):\n        ctx.register_hook(n, f)\n",
    "a name that is bound twice": "HOOK = 'a'\nHOOK = HOOK.upper()\ndef register(ctx):\n"
    "    ctx.register_hook(HOOK, f)\n",
    "an argument": "def add(ctx, n):\n    ctx.register_hook(n, f)\ndef register(ctx):\n    add(ctx, 'a')\n",
    "getattr": "def register(ctx):\n    getattr(ctx, 'register_' + 'hook')('pre_tool_call', f)\n",
    "getattr of the plain word": "def register(ctx):\n    add = getattr(ctx, 'register_hook')\n    add('x', f)\n",
    "under another name": "def register(ctx):\n    add = ctx.register_hook\n    add('x', f)\n",
    "many at once": "def register(ctx):\n    for row in ROWS:\n        ctx.register_hook(*row)\n",
    "code from elsewhere": "import sdk\ndef register(ctx):\n    sdk.attach(ctx)\n",
    "a base class from elsewhere": "from sdk import Base\nclass P(Base):\n    pass\n"
    "def register(ctx):\n    P().attach(ctx)\n",
    "register from elsewhere": "from sdk import register\n",
    "text that is run": "def register(ctx):\n    exec('ctx.register_' + 'hook(1, 2)')\n",
    "its inside": "def register(ctx):\n    ctx.__class__.__dict__['register_' + 'hook'](ctx, 'a', f)\n",
    "no Python": "def register(ctx)\n    ctx.register_hook(NAME, f)\n",
}


@pytest.mark.parametrize("how", SEEN)
def test_what_is_seen_is_named(how: str) -> None:
    source, names = SEEN[how]
    assert read_registrations("p", "__init__.py", {"__init__.py": source.encode()}) == RegistrationSource(
        frozenset(names.split())
    )


@pytest.mark.parametrize("how", UNKNOWN)
def test_what_is_not_seen_has_a_place(how: str) -> None:
    found = read_registrations("p", "__init__.py", {"__init__.py": UNKNOWN[how].encode()})
    assert str(found.place).startswith("p/__init__.py")


def test_a_file_beside_it_is_read_too() -> None:
    files = {
        "__init__.py": b"from . import guards\ndef register(ctx):\n    guards.add(ctx)\n",
        "guards.py": b"from .names import HOOKS as NAMES\n"
        b"def add(ctx):\n    ctx.register_hook('a', f)\n    for n in NAMES:\n        ctx.register_hook(n, f)\n",
    }
    found = read_registrations("p", "__init__.py", files)
    assert (found.names, str(found.place), found.is_name) == (frozenset({"a"}), "p/guards.py:5:13", True)


def test_broken_python_in_which_all_is_plain_is_read() -> None:
    source = b"def f(**kw)\n    pass\ndef register(ctx):\n    ctx.register_hook('a', f)\n"
    assert read_registrations("p", "__init__.py", {"__init__.py": source}) == RegistrationSource(frozenset({"a"}))
