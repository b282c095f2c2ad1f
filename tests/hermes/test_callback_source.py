"""The source of a plugin shows if it may be a guard; parts that cannot be read count as one."""

import pytest

from gateway.hermes.callback_source import can_guard

REGISTER = "\ndef register(ctx):\n    ctx.register_hook('pre_tool_call', before)\n"
LOOKS_ON = {
    "it prints and counts": "def before(tool_name, args, **kw):\n"
    "    print(tool_name, args)\n    COUNTS[tool_name] = 1\n"
    "    kw.pop('x', None)\n" + REGISTER,
    "it returns early": "def before(tool_name, **kw):\n    if not tool_name:\n        return\n    return None\n"
    + REGISTER,
    "a helper notes it": "def note(a):\n    print(a)\ndef before(args, **kw):\n    note(args)\n" + REGISTER,
    "what it fills is its own": "def before(tool_name, args, **kw):\n"
    "    row = {'args': args}\n    row['name'] = tool_name\n"
    "    LOG.append(row)\n" + REGISTER,
    "a method": "class Log:\n    def before(self, tool_name, **kw):\n        self.count[tool_name] = 1\n"
    "def register(ctx):\n    log = Log()\n    ctx.register_hook('pre_tool_call', log.before)\n",
    "a function that is made": "def make(n):\n    def note(**kw):\n        print(n, kw)\n    return note\n"
    "def register(ctx):\n    for n in ('pre_tool_call', 'x'):\n        ctx.register_hook(n, make(n))\n",
    "a lambda that notes": "def register(ctx):\n    ctx.register_hook('pre_tool_call', lambda **kw: SEEN.append(kw))\n",
    "a coroutine": "async def before(tool_name, **kw):\n    await put(tool_name)\n" + REGISTER,
    "only other hooks": "def look(**kw):\n    return {}\n# pre_tool_call is not ours\n"
    "def register(ctx):\n    ctx.register_hook('post_tool_call', look)\n",
}
MAY_DECIDE = {
    "the words stand in a file": "RULES = read()\ndef before(tool_name, **kw):\n    return RULES.get(tool_name)\n"
    + REGISTER,
    "it changes the arguments": "def before(args, **kw):\n    args['x'] = 1\n" + REGISTER,
    "it adds to one of them": "def before(args, **kw):\n    args['x'] += ' -n'\n" + REGISTER,
    "a helper changes them": "def fix(a):\n    a.update(x=1)\ndef before(args, **kw):\n    fix(args)\n" + REGISTER,
    "an alias is changed": "def before(**kw):\n    a = kw.get('args')\n    a['x'] = 1\n" + REGISTER,
    "it raises": "def before(tool_name, **kw):\n    raise ValueError('no')\n" + REGISTER,
    "it asserts": "def before(args, **kw):\n    assert 'rm' not in args['command'], 'no'\n" + REGISTER,
    "a helper asserts": "def look(a):\n    assert a\ndef before(args, **kw):\n    look(args)\n" + REGISTER,
    "a helper raises": "def look(a):\n    if a:\n        raise Blocked(a)\ndef before(args, **kw):\n    look(args)\n"
    + REGISTER,
    "a lambda that answers": "def register(ctx):\n    ctx.register_hook('pre_tool_call', lambda **kw: decide(kw))\n",
    "a decorator": "@safe\ndef before(**kw):\n    print()\n" + REGISTER,
    "a callback from elsewhere": "from other import before\n" + REGISTER,
    "it is bound again": "def before(**kw):\n    print()\nbefore = wrap(before)\n" + REGISTER,
    "register_hook under another name": "def before(**kw):\n"
    "    print()\ndef register(ctx):\n    add = ctx.register_hook\n"
    "    add('pre_tool_call', before)\n",
    "by getattr": "def register(ctx):\n    getattr(ctx, 'register_hook')('pre_tool_call', before)\n",
    "a base class registers": "from kit import Guard\n"
    "class Mine(Guard):\n    hook = 'pre_tool_call'\nregister = Mine()\n",
    "it cannot be read": "def before(:\n" + REGISTER,
}


@pytest.mark.parametrize("form", LOOKS_ON)
def test_who_is_seen_only_to_look_on_is_no_guard(form: str) -> None:
    assert not can_guard({"__init__.py": LOOKS_ON[form].encode()}, "pre_tool_call")


@pytest.mark.parametrize("form", MAY_DECIDE)
def test_what_answers_or_cannot_be_seen_may_be_a_guard(form: str) -> None:
    assert can_guard({"__init__.py": MAY_DECIDE[form].encode()}, "pre_tool_call")
