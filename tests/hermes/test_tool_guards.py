"""Guards with names of tools that never occur: found in the source of a plugin, and in a matcher."""

import pytest

from gateway.hermes.tool_guards import check_tool_guards, check_tool_pattern
from gateway.yaml_source.tree import SourceLocation

REGISTER = "\ndef register(ctx):\n    ctx.register_hook('pre_tool_call', guard)\n"
GUARD = "def guard(tool_name, **_):\n    return "
FORMS = {
    "compared": "def guard(tool_name, **_):\n    return tool_name == 'nail' or None\n",
    "the other way round": "def guard(tool_name, **_):\n    if 'nail' != tool_name: return None\n",
    "in a set": "BAD = {'terminal', 'nail'}\ndef guard(tool_name, **_):\n    return tool_name in BAD or None\n",
    "in a frozenset of a class": "class G:\n    BAD = frozenset(['nail'])\n    def go(self, tool_name, **_):\n"
    "        return tool_name not in self.BAD\n",
    "in a table": "RULES = {'nail': 1}\ndef guard(**kw):\n    a = kw['tool_name'].lower()\n    return RULES.get(a)\n",
    "in a union": "BAD = {'terminal'} | set(['nail'])\n" + GUARD + "tool_name in BAD or None\n",
    "in a set of sets": "A = {'nail'}\nBAD = {*A, 'patch'}\n" + GUARD + "tool_name in BAD.union(A)\n",
    "compared with each": "BAD = ('terminal', 'nail')\ndef guard(tool_name, **_):\n"
    "    return any(tool_name == b for b in BAD) or None\n",
    "in a loop over a table": "RULES = {'nail': 1}\ndef guard(tool_name, **_):\n    for name, rule in RULES.items():\n"
    "        if tool_name == name: return rule\n",
    "in a helper": "def is_bad(name):\n    return name == 'nail'\ndef guard(tool_name, **_):\n"
    "    return is_bad(tool_name) or None\n",
    "in a helper of a helper": "class G:\n    def bad(self, tool, args): return tool in ('nail',)\n"
    "    def look(self, name): return self.bad(name, 1)\n    def go(self, **kw): return self.look(kw['tool_name'])\n",
    "in a case": "def guard(tool_name, **_):\n    match tool_name:\n        case 'nail' | 'patch': return 1\n",
}


def said(source: str) -> list[str]:
    return [str(finding) for finding in check_tool_guards("p", {"__init__.py": source.encode()})]


@pytest.mark.parametrize("form", FORMS)
def test_a_name_that_no_tool_has_is_found_in_every_form(form: str) -> None:
    (found,) = said(FORMS[form] + REGISTER)
    assert "its guard names a tool that is not here: nail; it stops nothing there" in found


PATTERNS = {
    "startswith 'nail_'": "def guard(tool_name, **_):\n    return tool_name.startswith('nail_') or None\n",
    "begin with 'nail_'": "P = ('term', 'nail_')\n" + GUARD + "any(tool_name.startswith(p) for p in P)\n",
    "match 'nail'": "import re\n" + GUARD + "re.match('^(nail|terminal)$', tool_name) and 1\n",
    "match 'nail.*'": "import re\nX = re.compile('nail.*')\n" + GUARD + "X.search(tool_name) and 1\n",
    "match 'na.l'": "import re\nclass G:\n    X = re.compile(r'na.l')\n    def go(self, tool_name, **_):\n"
    "        return self.X.fullmatch(tool_name)\n",
    "like 'nail*'": "import fnmatch\n" + GUARD + "fnmatch.fnmatch(tool_name, 'nail*') or None\n",
}


@pytest.mark.parametrize("form", PATTERNS)
def test_a_pattern_that_no_tool_fits_is_found(form: str) -> None:
    (found,) = said(PATTERNS[form] + REGISTER)
    assert form.removeprefix("startswith ") in found
    assert "its guard waits for tools that" in found or "its guard waits for tools like" in found


@pytest.mark.parametrize(
    "source",
    [
        "def guard(tool_name, **_):\n    return tool_name.startswith(('mcp__', 'mcp__git__', 'read_')) or None\n"
        + REGISTER,
        "import re\ndef guard(tool_name, **_):\n    return re.match('(read|write)_file|mcp__git.*', tool_name)\n"
        + REGISTER,
        "from fnmatch import fnmatch\ndef guard(tool_name, **_):\n    return fnmatch(tool_name, '*_file')\n" + REGISTER,
        "def rule(name):\n    return name == 'nail'\ndef guard(tool_name, args, **_):\n    return rule(args['who'])\n"
        + REGISTER,
        "def guard(tool_name, **_):\n    for name, why in [('patch', 'nail')]:\n        if tool_name == name: return\n"
        + REGISTER,
        "def guard(tool_name, **_):\n    return tool_name in ('terminal', 'patch', 'recall', 'mcp__git__push_it')\n"
        + REGISTER,
        "def guard(tool_name, args, **_):\n    return 'nail' in tool_name or args['x'] == 'nail'\n" + REGISTER,
        "def guard(tool_name, **_):\n    return tool_name == 'nail'\n"
        + REGISTER
        + "    ctx.register_tool('nail', 't', {}, 0)\n",
        "def look(tool_name, **_):\n    print(tool_name == 'nail')\n",
        "def guard(tool_name:\n",
    ],
)
def test_where_nothing_is_wrong_nothing_is_said(source: str) -> None:
    assert said(source) == []


def test_a_table_may_stand_in_a_module_beside_it() -> None:
    source = "from .rules import TABLE\ndef guard(tool_name, **_):\n    return TABLE.get(tool_name)\n" + REGISTER
    files = {"__init__.py": source.encode(), "rules.py": b"TABLE = {'terminal': 1, 'nail': 2}\n"}
    (found,) = map(str, check_tool_guards("p", files))
    assert found.startswith("p/__init__.py:3")
    assert "not here: nail;" in found


def test_a_name_of_ours_is_told_with_the_name_that_a_guard_gets() -> None:
    names = ["shell", "mcp__my-git__push", "mcp_my_git_push", "mcp__my_git__push"]
    (found,) = said(f"def guard(tool_name, **_):\n    return tool_name in {names}\n" + REGISTER)
    assert "not here: shell, mcp__my-git__push, mcp_my_git_push;" in found
    assert "shell is told to it as terminal; mcp__my-git__push is told to it as mcp__my_git__push; mcp_my" in found
    assert found.endswith("mcp_my_git_push is told to it as mcp__SERVER__TOOL")


@pytest.mark.parametrize(
    ("matcher", "what"),
    [
        ("terminal|write_file", ""),
        ("(?:read|write)_file", ""),
        ("(?i)Patch", ""),
        ("shell", ""),
        (".*_file", ""),
        ("mcp__.*", ""),
        ("(?!terminal).*", ""),
        ("terminal|Bash", "names a tool that is not here: Bash"),
        ("browser_.*", "matches no tool"),
    ],
)
def test_a_matcher_is_read_in_the_same_way(matcher: str, what: str) -> None:
    found = [str(finding) for finding in check_tool_pattern(SourceLocation("config.yaml"), matcher)]
    assert [what in one for one in found] == ([True] if what else [])
