"""Files written for pip are read as pip would, without running anything."""

import sys
from pathlib import Path

import pytest

from gateway.cli.hooks.deps import merge_asked
from gateway.errors import HookError
from gateway.hermes.imports import find_missing_imports
from gateway.hermes.package_files import PackageFiles, describe_missing_module
from gateway.hermes.plugin_packages import find_plugin_packages

POETRY = """
[tool.poetry.dependencies]
python = "^3.10"
rich = "^13.2"
httpx = "*"
boto3 = {version = "1.34", optional = true}
"""


@pytest.mark.parametrize(
    ("file", "text", "wanted"),
    [
        ("requirements.txt", "# those\nhttpx>=0.27 # a client\n\n-r base.txt\n.\n-e .\n", ["httpx>=0.27"]),
        ("requirements.txt", "a==1 \\\n    --hash=sha256:00\nb ; python_version < '3'\n", ["a==1"]),
        ("requirements-hooks.txt", "rich[all]~=13.0\n", ["rich[all]~=13.0"]),
        ("requirements-dev.txt", "pytest\n", []),
        ("requirements_test.txt", "pytest\n", []),
        (
            "pyproject.toml",
            "[project]\ndependencies = ['rich>=13', 'hermes-agent>=0.19', 'x; extra == \"a\"']",
            ["rich>=13"],
        ),
        ("pyproject.toml", POETRY, ["rich>=13.2", "httpx"]),
        ("setup.cfg", "[options]\ninstall_requires =\n  rich>=13\n  httpx # a client\n", ["rich>=13", "httpx"]),
        ("setup.py", "raise SystemExit(1)", []),
    ],
)
def test_each_format_is_read(tmp_path: Path, file: str, text: str, wanted: list[str]) -> None:
    (tmp_path / file).write_text(text)
    found = PackageFiles(tmp_path)
    assert (found.wanted, found.unread) == (wanted, [])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("requirements.txt", "git+https://example.com/x.git\n"),
        ("requirements.txt", "--extra-index-url https://example.com\n"),
        ("requirements.txt", "x @ https://example.com/x.whl\n"),
        ("pyproject.toml", "[project\n"),
        ("setup.cfg", "no section\n"),
    ],
)
def test_what_leads_elsewhere_or_cannot_be_read_is_told_and_not_followed(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    found = PackageFiles(tmp_path)
    assert found.wanted == []
    assert "is not read here" in str(found.unread[0])


def test_what_was_named_by_hand_is_remembered_and_the_last_word_counts() -> None:
    assert merge_asked(["httpx==0.27", "rich"], ["HTTPX>=0.28", "git+https://e.com/x"]) == [
        "HTTPX>=0.28",
        "rich",
        "git+https://e.com/x",
    ]
    with pytest.raises(HookError, match="not a package"):
        merge_asked([], ["--index-url=https://example.com"])


@pytest.mark.parametrize(
    ("module", "helps"),
    [
        ("yaml_not.x", "the package yaml_not is missing; run: hermes-gateway hooks deps h yaml_not"),
        ("bs4", "the package beautifulsoup4 is missing; run: hermes-gateway hooks deps h beautifulsoup4"),
        ("hermes_cli.main", "hermes_cli.main is Hermes's own and is not offered here"),
        ("utils", "utils is Hermes's own and is not offered here"),
        ("sibling", ""),
        ("json.nothing", ""),
    ],
)
def test_what_helps_is_one_command(tmp_path: Path, module: str, helps: str) -> None:
    (tmp_path / "sibling.py").touch()
    assert describe_missing_module(f"No module named '{module}'", "h", tmp_path, []) == helps


def missing(source: str, **more: str) -> list[tuple[str, bool]]:
    files = {"handler.py": source.encode()} | {f"{name}.py": text.encode() for name, text in more.items()}
    return [(one.module, one.is_fatal) for one in find_missing_imports(Path("h"), "handler.py", files, sys.path)]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import json, msgspec, run_agent, hermes_cli.x\nfrom gateway.hooks import on", []),
        ("import no_such_thing.inner", [("no_such_thing", True)]),
        ("def f():\n  from no_such_thing import x", [("no_such_thing", False)]),
        ("try:\n  import no_such_thing\nexcept ImportError: pass", []),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import no_such_thing", []),
        ("import typing\nif not typing.TYPE_CHECKING:\n  import no_such_thing", [("no_such_thing", True)]),
        ("import sys\nsys.path.append('/elsewhere')\nimport no_such_thing", [("no_such_thing", False)]),
    ],
)
def test_an_import_that_is_not_there_is_found_and_judged(source: str, found: list[tuple[str, bool]]) -> None:
    assert missing(source) == found


@pytest.mark.parametrize(
    ("place", "is_fatal"),
    [
        ("str(Path(__file__).resolve().parent.parent / '_lib')", None),
        ("os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), '_lib')", None),
        ("str(Path(__file__).parents[1].joinpath('_lib'))", None),
        ("HERE", None),
        ("os.path.dirname(__file__)", True),
        ("os.environ['LIB']", False),
        ("str(Path(__file__).parent / 'made-later')", False),
    ],
)
def test_where_code_looks_for_its_modules_is_followed(tmp_path: Path, place: str, is_fatal: bool | None) -> None:
    for name in ("h", "_lib"):
        (tmp_path / name).mkdir()
    (tmp_path / "_lib" / "lent.py").touch()
    source = f"""import os, sys
from pathlib import Path
HERE = Path(__file__).parent.parent / '_lib'
sys.path.insert(0, {place})
from lent import x
"""
    found = find_missing_imports(tmp_path / "h", "handler.py", {"handler.py": source.encode()}, sys.path)
    assert [one.is_fatal for one in found] == [one for one in (is_fatal,) if one is not None]


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("sys.path.extend([HERE])", True),
        ("sys.path += [HERE, '/elsewhere']", True),
        ("sys.path[:0] = [HERE]", True),
        ("sys.path = [HERE] + sys.path", True),
        ("sys.path = [HERE, *sys.path]", True),
        ("sys.path.extend(find_places())", False),
    ],
)
def test_whatever_adds_to_where_code_looks_is_read(tmp_path: Path, line: str, is_found: bool) -> None:
    for name in ("h", "_lib"):
        (tmp_path / name).mkdir()
    (tmp_path / "_lib" / "lent.py").touch()
    source = "import sys\nfrom pathlib import Path\nHERE = str(Path(__file__).parent.parent / '_lib')\n"
    source += f"{line}\nimport lent\n"
    found = list(find_missing_imports(tmp_path / "h", "handler.py", {"handler.py": source.encode()}, sys.path))
    assert [one.is_sure for one in found] == ([] if is_found else [False])


def test_only_code_that_is_imported_is_looked_at() -> None:
    inner = {
        "lib/__init__": "from .deep import x",
        "lib/deep": "import no_such_one",
        "scripts/run": "import no_such_two",
    }
    assert missing("from lib import x", **inner) == [("no_such_one", True)]
    assert missing("import json", **inner) == []


def test_entry_points_are_found_by_what_the_installer_wrote(tmp_path: Path) -> None:
    info = tmp_path / "moon-1.0.dist-info"
    info.mkdir()
    text = "[console_scripts]\na = b:c\n[hermes_agent.plugins]\nmoon = moon.plugin:Plugin [extra]\n; x = y\n"
    (info / "entry_points.txt").write_text(text)
    (found,) = find_plugin_packages([tmp_path / "none", tmp_path]).values()
    assert (found.name, found.value, found.module, found.version) == (
        "moon",
        "moon.plugin:Plugin",
        "moon.plugin",
        "1.0",
    )
