"""Hooks of others: none of their code runs before consent, and exactly the agreed code runs."""

import contextlib
import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.installer.archives import GREET, HANDLER, MANIFEST, make_tar, make_wheel, make_zip, put

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
AUTHOR = ("-c", "user.name=x", "-c", "user.email=x@example.org")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *AUTHOR, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, files: dict[str, str]) -> str:
    """A repository with these files; the name of the commit."""
    put(folder, files)
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "more")
    return git(folder, "rev-parse", "HEAD")


def lock_of(gateway: GatewayProcess) -> dict[str, Any]:
    return dict(json.loads(gateway.home.hooks_lock.read_text())["hooks"])


def code_of(gateway: GatewayProcess, name: str = "greet") -> str:
    return Path(gateway.home.own_folder, lock_of(gateway)[name]["path"], "handler.py").read_text()


@pytest.mark.row("T25")
def test_nothing_is_installed_without_a_yes(gateway: GatewayProcess, greet: Path) -> None:
    done = gateway.cli("hooks", "install", str(greet))
    assert done.returncode == 1
    assert "observes  agent:end" in done.stdout
    assert "network   none" in done.stdout
    assert "read the above, then add --yes" in done.stderr
    assert not gateway.home.hooks_lock.exists()
    assert [path.name for path in gateway.home.installed_hooks.iterdir()] == []


@pytest.mark.row("T25")
@pytest.mark.parametrize(
    ("before", "said", "is_there"), [("", "y\n", True), ("", "n\n", False), ("", "\n", False), ("y\n", "\n", False)]
)
def test_whoever_sits_there_is_asked(
    gateway: GatewayProcess, greet: Path, before: str, said: str, is_there: bool
) -> None:
    """What was typed before the question stood there is no answer to it."""
    ours, theirs = pty.openpty()
    os.write(ours, before.encode())
    words = [sys.executable, "-m", "gateway.cli", "hooks", "install", str(greet)]
    with subprocess.Popen(words, env=gateway.environ, stdin=theirs, stderr=subprocess.PIPE) as asked:
        os.close(theirs)
        assert asked.stderr
        shown = b""
        while not shown.endswith(b"Install greet? [y/N] "):
            more = os.read(asked.stderr.fileno(), 1000)
            assert more, shown
            shown += more
        os.write(ours, said.encode())
        asked.stderr.read()
    os.close(ours)
    assert gateway.home.hooks_lock.exists() is is_there
    assert asked.returncode == (0 if is_there else 1)


@pytest.mark.row("T25")
def test_an_installed_hook_runs_held_to_what_it_says(gateway: GatewayProcess, greet: Path) -> None:
    gateway.start()
    put(greet, {"handler.py": "def handle(name, context):\n    print(open('/etc/hostname').read(), 'was read')\n"})
    done = gateway.cli("hooks", "install", str(greet), "--yes")
    assert (done.returncode, "greet is loaded" in done.stderr) == (0, True), done.stderr
    assert gateway.cli("hooks", "fire", "greet", "agent:end").returncode != 0
    assert "PermissionError" in gateway.cli("hooks", "logs", "greet").stdout
    found = gateway.call("hooks.info", {"name": "greet"})
    assert (found["origin"], found["restricted"]) == ("installed", "it was installed")


@pytest.mark.row("T25")
def test_what_was_changed_since_does_not_run(gateway: GatewayProcess, greet: Path) -> None:
    gateway.cli("hooks", "install", str(greet), "--yes")
    file = gateway.home.own_folder / lock_of(gateway)["greet"]["path"] / "handler.py"
    file.chmod(0o600)
    file.write_text("raise SystemExit('planted')\n")
    gateway.start()
    assert "is not as it was installed" in gateway.call("hooks.info", {"name": "greet"})["reason"]
    mended = gateway.cli("hooks", "install", str(greet), "--yes")
    assert (mended.returncode, "greet is loaded" in mended.stderr) == (0, True), mended.stderr


def test_a_change_while_it_runs_is_reported(gateway: GatewayProcess, greet: Path) -> None:
    gateway.cli("hooks", "install", str(greet), "--yes")
    gateway.start()
    gateway.until(lambda: gateway.call("hooks.info", {"name": "greet"})["state"] == "loaded")
    file = gateway.home.own_folder / lock_of(gateway)["greet"]["path"] / "handler.py"
    file.chmod(0o600)
    file.write_text("raise SystemExit('planted')\n")
    gateway.until(lambda: "is not as it was installed" in gateway.call("hooks.info", {"name": "greet"})["reason"])
    assert gateway.call("hooks.fire", {"name": "greet", "event": "agent:end"})["ok"]


def test_a_placed_folder_wins_and_the_installed_one_says_so(gateway: GatewayProcess, greet: Path) -> None:
    gateway.start()
    gateway.cli("hooks", "install", str(greet), "--yes")
    placed = gateway.add_hook("greet", {**GREET, "handler.py": HANDLER.replace("hello", "placed")})
    gateway.until(lambda: gateway.call("hooks.info", {"name": "greet"})["origin"] == "home")
    shadow = Path(lock_of(gateway)["greet"]["path"]).name
    gateway.until(lambda: gateway.call("hooks.info", {"name": shadow})["state"] == "disabled")
    assert f"{placed} replaces it" in gateway.call("hooks.info", {"name": shadow})["reason"]
    shutil.rmtree(placed)
    gateway.until(lambda: gateway.call("hooks.info", {"name": "greet"})["origin"] == "installed")
    gateway.until(lambda: shadow not in {hook["name"] for hook in gateway.call("hooks.list")["hooks"]})


@pytest.mark.parametrize("kind", ["archive", "below", "below-top", "zip", "git", "wheel"])
def test_it_comes_from_wherever_it_is_offered(gateway: GatewayProcess, tmp_path: Path, kind: str) -> None:
    match kind:
        case "archive":
            files = {f"greet-1.0.0/{name}": text for name, text in GREET.items()}
            source = str(make_tar(tmp_path / "greet-1.0.0.tar.gz", files))
        case "below" | "below-top":  # as GitHub makes them: all of it in one folder
            files = {f"hooks-1.0.0/for-chat/greet/{name}": text for name, text in GREET.items()}
            inner = "for-chat/greet" if kind == "below" else "hooks-1.0.0/for-chat/greet"
            source = f"{make_tar(tmp_path / 'hooks.tar.gz', {'hooks-1.0.0/README.md': 'x', **files})}#{inner}"
        case "zip":
            source = str(make_zip(tmp_path / "greet.zip", GREET))
        case "git":
            commit(tmp_path / "repository", {f"hooks/greet/{name}": text for name, text in GREET.items()})
            source = f"git+file://{tmp_path}/repository@main#hooks/greet"
        case _:
            files = {f"greetings/greet/{name}": text for name, text in GREET.items()}
            points = "[hermes_gateway.hooks]\ngreet = greetings.greet\n"
            source = str(make_wheel(tmp_path / "wheels", "greetings", files, points=points))
            gateway.environ |= {"PIP_NO_INDEX": "1"}
    done = gateway.cli("hooks", "install", source, "--yes", "--json")
    assert (done.returncode, json.loads(done.stdout.splitlines()[-1])["installed"]) == (0, "greet"), done.stderr
    assert lock_of(gateway)["greet"]["source"] == source
    assert code_of(gateway) == HANDLER
    assert gateway.cli("hooks", "test", "greet").returncode == 0


@pytest.mark.row("T25")
@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_packages_are_pinned_and_nothing_of_them_runs(gateway: GatewayProcess, tmp_path: Path, tool: str) -> None:
    files = {**{f"greetings/greet/{name}": text for name, text in GREET.items()}, "greetings/__init__.py": ""}
    files["greetings/greet/handler.py"] = "import wordlist\ndef handle(name, context):\n    print(wordlist.HELLO)\n"
    points = "[hermes_gateway.hooks]\ngreet = greetings.greet\n"
    wheels = tmp_path / "wheels"
    make_wheel(wheels, "greetings", files, ["wordlist>=1"], points)
    stale = {"wordlist/__pycache__/__init__.cpython-311.pyc": "made by somebody else"}
    make_wheel(wheels, "wordlist", {"wordlist/__init__.py": "HELLO = 'hello'\n", **stale}, version="1.2")
    uv = shutil.which("uv", path=f"{gateway.environ['PATH']}:{ROOT / '.uv' / 'bin'}")  # made the tests' environment
    assert uv
    path = f"{Path(uv).parent}:{gateway.environ['PATH']}" if tool == "uv" else "/usr/bin:/bin"
    around = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "UV_FIND_LINKS": str(wheels),
    }
    gateway.environ |= {"PATH": path, **around}
    done = gateway.cli("hooks", "install", "package:greetings", "--yes")
    assert done.returncode == 0, done.stderr
    assert "greetings==1.0, wordlist==1.2" in done.stdout
    locked = lock_of(gateway)["greet"]["packages"]
    assert [line.partition(" ")[0] for line in locked] == ["greetings==1.0", "wordlist==1.2"]
    assert all("--hash=sha256:" in line for line in locked)
    assert "hello" in gateway.cli("hooks", "test", "greet").stdout
    assert not [*gateway.home.installed_hooks.rglob("__pycache__")]  # which no backup keeps
    assert {file.stat().st_nlink for file in gateway.home.installed_hooks.rglob("*.py")} == {1}
    assert not [*(tmp_path / "cache").rglob("*.py")]  # whoever can write there would choose what is installed

    frozen = tmp_path / "frozen.json"
    frozen.write_text(gateway.cli("hooks", "freeze").stdout)
    make_wheel(wheels, "wordlist", {"wordlist/__init__.py": "HELLO = 'other'\n"}, version="1.2")
    changed = gateway.cli("hooks", "update", "--yes")
    assert (changed.returncode, "asks for more: packages: wordlist==1.2" in changed.stdout) == (1, True), changed.stderr
    assert lock_of(gateway)["greet"]["packages"] == locked
    gateway.cli("hooks", "remove", "greet")
    other = gateway.cli("hooks", "sync", str(frozen), "--yes")
    assert (other.returncode, lock_of(gateway)) == (1, {}), other.stderr


@pytest.mark.row("T25")
def test_a_package_that_would_have_to_run_is_refused(gateway: GatewayProcess, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    setup = f"open({str(ran)!r}, 'w')\nfrom setuptools import setup\nsetup(name='greetings', version='1.0')\n"
    files = {"greetings-1.0/setup.py": setup, "greetings-1.0/PKG-INFO": "Name: greetings\nVersion: 1.0\n"}
    (tmp_path / "wheels").mkdir()
    make_tar(tmp_path / "wheels" / "greetings-1.0.tar.gz", files)
    gateway.environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}
    done = gateway.cli("hooks", "install", "package:greetings", "--yes")
    assert (done.returncode, "packages of hooks are wheels" in done.stderr) == (1, True)
    assert not ran.exists()


@pytest.mark.row("T25")
def test_a_tag_that_was_moved_is_shown_and_a_frozen_one_is_not_followed(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    repository = tmp_path / "greet"
    first = commit(repository, GREET)
    git(repository, "tag", "v1")
    gateway.cli("hooks", "install", f"git+file://{repository}@v1", "--yes")
    frozen = tmp_path / "frozen.json"
    frozen.write_text(gateway.cli("hooks", "freeze").stdout)
    second = commit(repository, {"handler.py": HANDLER.replace("hello", "owned")})
    git(repository, "tag", "-f", "v1")
    told = gateway.cli("hooks", "outdated").stdout
    assert f"{first[:12]} -> {second[:12]}" in told
    checked = gateway.cli("hooks", "update", "--check")
    assert (checked.returncode, "+    print('owned', event_type)" in checked.stdout) == (1, True)
    assert lock_of(gateway)["greet"]["commit"] == first
    assert gateway.cli("hooks", "update", "--yes").returncode == 0
    assert lock_of(gateway)["greet"]["commit"] == second
    assert gateway.cli("hooks", "sync", str(frozen), "--yes").returncode == 0
    assert (lock_of(gateway)["greet"]["commit"], code_of(gateway)) == (first, HANDLER)


@pytest.mark.row("T25")
@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("net: true\n", "net: all of it"),
        ("intercepts: [tool:before]\n", "intercepts: tool:before"),
        ("env: [API_KEY]\n", "env: API_KEY"),
        ("reads: [/etc]\n", "reads: /etc"),
        ("schedule: every 5m\n", "schedule: every 5m"),
        ("on_error: deny\n", "on_error: deny"),
        ("on_error: raise\n", "on_error: raise"),
        ("command: sh -e\n", "command: sh -e"),
        ("url: http://127.0.0.1:9/elsewhere\n", "url: http://127.0.0.1:9/elsewhere"),
    ],
)
def test_an_update_that_asks_for_more_is_never_taken_unattended(
    gateway: GatewayProcess, greet: Path, more: str, named: str
) -> None:
    gateway.cli("hooks", "install", str(greet), "--yes")
    before = gateway.home.hooks_lock.read_text()
    put(greet, {"HOOK.yaml": MANIFEST + more})
    done = gateway.cli("hooks", "update", "--yes")
    assert (done.returncode, f"asks for more: {named}" in done.stdout) == (1, True), done.stdout
    assert "it stays as it is" in done.stderr
    again = gateway.cli("hooks", "install", str(greet), "--yes")
    assert (again.returncode, gateway.home.hooks_lock.read_text()) == (1, before)


@pytest.mark.row("T25")
def test_an_update_that_guards_less_is_never_taken_unattended(gateway: GatewayProcess, greet: Path) -> None:
    put(greet, {"HOOK.yaml": f"{MANIFEST}intercepts: [tool:before]\non_error: deny\n"})
    gateway.cli("hooks", "install", str(greet), "--yes")
    before = gateway.home.hooks_lock.read_text()
    put(greet, {"HOOK.yaml": f"{MANIFEST}intercepts: [tool:before]\n"})
    for words in (("update", "--yes"), ("install", str(greet), "--yes")):
        done = gateway.cli("hooks", *words)
        assert (done.returncode, gateway.home.hooks_lock.read_text()) == (1, before), done.stdout
        assert "greet guards less, and this run cannot ask you" in done.stderr
        said = "  guards less: denies nothing where it fails: on_error: skip\n"
        assert done.stdout.index(said) < done.stdout.index("--- a/HOOK.yaml")
    assert said.strip() in gateway.cli("hooks", "outdated").stdout


def test_what_the_configuration_gives_a_hook_of_its_name_is_shown(gateway: GatewayProcess, greet: Path) -> None:
    """It may have been written for another one, which is here no more."""
    gateway.home.own_folder.mkdir()
    gateway.home.config.write_text("hooks: {greet: {env: [MY_KEY], options: {token: s3cret}, enabled: false}}\n")
    said = f"! hooks.greet of {gateway.home.config} counts for it: enabled: false; options: token; env: MY_KEY\n"
    skill = put(greet.parent / "tea", {"SKILL.md": "---\nname: tea\ndescription: Tea\n---\n"})
    shutil.copytree(greet, skill / "hooks" / "greet")
    for kind, source in (("hooks", greet), ("skills", skill)):
        shown = gateway.cli(kind, "install", str(source)).stdout
        assert said in shown, shown
        assert "s3cret" not in shown


@pytest.mark.parametrize(
    ("url", "posts"),
    [
        ("https://hooks.example.org:8443/told", "the gateway posts these events to hooks.example.org:8443"),
        ("nats://one:4222/hooks.x", "the gateway sends these events to hooks.x at nats://one:4222"),
    ],
)
def test_who_hears_what_is_posted_is_shown(gateway: GatewayProcess, tmp_path: Path, url: str, posts: str) -> None:
    far = put(tmp_path / "far", {"HOOK.yaml": f"events: [agent:end]\nurl: {url}\n"})
    done = gateway.cli("hooks", "install", str(far), "--yes")
    assert f"network   {posts}" in done.stdout
    assert "none" not in done.stdout
    gateway.start()
    assert gateway.call("hooks.info", {"name": "far"})["net"] == posts


def test_what_cannot_be_seen_is_shown_before_a_yes(gateway: GatewayProcess, greet: Path) -> None:
    """Also in what an update changes."""
    gateway.cli("hooks", "install", str(greet), "--yes")
    put(greet, {"HOOK.yaml": f"{MANIFEST}reads: ['/srv/a\u3164', '/srv/\u2800b\U000e0101']\n"})
    put(greet, {"words.py": "# coding: utf-7\n# hello +AAo-print('more')\n"})
    for words in (("update", "--check"), ("install", str(greet))):
        said = gateway.cli("hooks", *words)
        assert "/srv/a\\u3164, /srv/\\u2800b\\U000e0101" in said.stdout, said
        assert "! words.py is in utf-7: what Python runs of it is not what is shown" in said.stdout
        assert said.stdout.isascii()
        gateway.cli("hooks", "remove", "greet")


def test_all_that_is_asked_for_is_shown_however_much_it_is(gateway: GatewayProcess, greet: Path) -> None:
    gateway.environ["HERMES_GATEWAY_CALLED"] = "./x"
    gateway.cli("hooks", "install", str(greet), "--yes")
    harmless = "".join(f"  - /usr/share/doc/{'x' * 60}/{number}\n" for number in range(60))
    put(greet, {"HOOK.yaml": f"{MANIFEST}command: [hermes-gateway, chat]\nreads:\n{harmless}  - ~/.ssh\n"})
    lines = gateway.cli("hooks", "update", "--check").stdout.splitlines()
    asked = [one for one in lines if one.startswith(("  + reads: ", "  asks for more: reads: "))]
    assert [one.endswith(", ~/.ssh") for one in asked] == [True, True], lines
    assert "  + starts: hermes-gateway chat" in lines  # its words, and not ours
    gateway.cli("hooks", "remove", "greet")
    lines = gateway.cli("hooks", "install", str(greet)).stdout.splitlines()
    assert [one[-8:] for one in lines if one.startswith("reads ")] == [", ~/.ssh"]
    assert "starts    hermes-gateway chat" in lines


def test_a_difference_that_is_cut_says_where_the_rest_is(gateway: GatewayProcess, greet: Path) -> None:
    gateway.cli("hooks", "install", str(greet), "--yes")
    put(greet, {"handler.py": HANDLER + "# more\n" * 500 + "# the end\n"})
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "gateway.cli", "hooks", "update", "greet", "--check"]
    with subprocess.Popen(words, env=gateway.environ, stdout=theirs, stderr=subprocess.PIPE) as shown:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # the terminal ends with the program
            while part := os.read(ours, 65536):
                seen += part
        assert shown.stderr
        said = shown.stderr.read().decode()
    os.close(ours)
    assert b"the end" not in seen
    assert "lines of the difference are not shown" in said
    assert "hooks update greet --check | less" in said
    assert "+# the end" in gateway.cli("hooks", "update", "greet", "--check").stdout


def test_what_lies_there_because_somebody_works_on_it_is_not_installed(gateway: GatewayProcess, greet: Path) -> None:
    """A repository in which its author has tested and edited, with what would be refused or would change the hash."""
    gateway.cli("hooks", "install", str(greet), "--yes")
    digest = lock_of(gateway)["greet"]["digest"]
    commit(greet, {".pytest_cache/README.md": "x", ".handler.py.swp": "x", "handler.py~": "x"})
    for folder in (".venv", "venv", "node_modules"):
        (greet / folder / "bin").mkdir(parents=True)
        (greet / folder / "bin" / "python").symlink_to(sys.executable)
        (greet / folder / "large").write_bytes(b"\0" * (65 << 20))
    (greet / "__pycache__").mkdir()
    assert gateway.cli("hooks", "outdated").stdout.strip() == "everything that is installed is up to date"
    assert gateway.cli("hooks", "install", str(greet), "--yes").returncode == 0
    assert lock_of(gateway)["greet"]["digest"] == digest
    folder = gateway.home.own_folder / lock_of(gateway)["greet"]["path"]
    assert sorted(path.name for path in folder.iterdir()) == ["HOOK.yaml", "handler.py"]
    put(greet, {"handler.py": HANDLER.replace("hello", "hullo"), ".pytest_cache/README.md": "y"})
    assert ".pytest_cache" not in gateway.cli("hooks", "update", "--check").stdout


HOSTILE = {
    "leads out": ({"HOOK.yaml": MANIFEST, "../../out.py": "x"}, "leads out of its folder"),
    "broken": ({"HOOK.yaml": "events: [", "handler.py": HANDLER}, "would not run"),
    "no hook": ({"README.md": "hello"}, "is not a hook"),
    "a plugin": ({"plugin.yaml": "name: x", "__init__.py": ""}, "is a plugin for Hermes"),
    "odd name": ({"HOOK.yaml": "name: ../../x\nevents: [agent:end]\n", "handler.py": HANDLER}, "not a valid hook name"),
}


@pytest.mark.row("T25")
@pytest.mark.parametrize(("files", "said"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_hostile_is_refused_and_leaves_nothing(
    gateway: GatewayProcess, tmp_path: Path, files: dict[str, str], said: str
) -> None:
    name = "A B.zip" if "name" in said else "greet.zip"
    done = gateway.cli("hooks", "install", str(make_zip(tmp_path / name, files)), "--yes")
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert not gateway.home.hooks_lock.exists()
    assert [path.name for path in gateway.home.installed_hooks.iterdir()] == []


@pytest.mark.row("T25")
def test_nothing_outside_of_a_folder_is_taken_along(gateway: GatewayProcess, tmp_path: Path, greet: Path) -> None:
    """By no link, and by none in the middle of the way that the source names."""
    tea = put(tmp_path / "tea", {"SKILL.md": "---\nname: tea\ndescription: Tea.\n---\nSteep.\n"})
    put(tmp_path, {"secret": "of mine"})
    for folder, verb in ((greet, "hooks"), (tea, "skills")):
        (folder / "here").symlink_to(".")
        (folder / "notes").symlink_to("here/../secret")
        done = gateway.cli(verb, "install", str(folder), "--yes")
        assert (done.returncode, "leads out of the folder" in done.stderr) == (1, True), done.stderr
    (tea / "out").symlink_to("../outside")
    put(tmp_path / "outside", GREET)
    done = gateway.cli("hooks", "install", f"{tea}#out", "--yes")
    assert (done.returncode, "#out is a link that leads out of" in done.stderr) == (1, True), done.stderr
    assert not gateway.home.hooks_lock.exists()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("git+https://", "names no repository"),
        ("git+ext::sh -c id", "names no repository"),
        ("git+file:///nowhere@--upload-pack=id", "is not a repository"),
        ("git+file:///nowhere#../x", "is not a folder in there"),
        ("http://example.org/x.zip", "fetched over https"),
        ("https://example.org/greet", "git+https://example.org/greet"),
        ("package:greet; rm", "is not a package"),
        ("package:--pre", "is not a package"),
        ("https://example.org/index.json", "hooks index add https://example.org/index.json --key KEY"),
        ("git+https://[x", "git+https://[x is not a source: Invalid IPv6 URL"),
        ("https://[x/greet.zip", "is not a source"),
        ("~nobody-at-all/greet", "is not a source"),
        (f"./{'x' * 300}", "is not a source: File name too long"),
        ("./nowhere", "is not there"),
        ("nowhere", "no index has such a hook"),
        ("tool-aproval", "no index has such a hook: tool-aproval; did you mean tool-approval?"),
    ],
)
def test_a_source_that_is_none_is_said(gateway: GatewayProcess, source: str, said: str) -> None:
    done = gateway.cli("hooks", "install", source, "--yes")
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


def test_repositories_run_nothing(gateway: GatewayProcess, tmp_path: Path) -> None:
    """Links, submodules and settings of a repository are not files of a hook."""
    ran = tmp_path / "ran"
    repository = tmp_path / "greet"
    attributes = "* filter=evil export-subst\n"
    commit(repository, {**GREET, ".gitattributes": attributes})
    (repository / ".git" / "hooks" / "post-checkout").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (repository / ".git" / "hooks" / "post-checkout").chmod(0o755)
    git(repository, "config", "filter.evil.smudge", f"touch {ran}")
    git(repository, "config", "uploadpack.packObjectsHook", f"touch {ran}; exec git pack-objects")
    assert gateway.cli("hooks", "install", f"git+file://{repository}", "--yes").returncode == 0
    assert not ran.exists()
    lost = gateway.cli("hooks", "install", f"git+file://{repository}#gret", "--yes")
    assert (lost.returncode, " has no folder gret" in lost.stderr) == (1, True), lost.stderr
    (repository / "link.py").symlink_to("/etc/passwd")
    commit(repository, {})
    done = gateway.cli("hooks", "update", "--yes")
    assert (done.returncode, "a link or a device" in done.stderr) == (1, True), done.stderr


def test_without_a_name_of_its_own_it_is_called_as_where_it_came_from(gateway: GatewayProcess, tmp_path: Path) -> None:
    source = put(tmp_path / "Wave", {**GREET, "HOOK.yaml": "events: [agent:end]\nuses: [store]\n"})
    assert gateway.cli("hooks", "install", str(source), "--yes").returncode == 0
    assert [*lock_of(gateway)] == ["wave"]


def test_no_hook_is_installed_under_the_name_of_one_that_comes_with_it(gateway: GatewayProcess, tmp_path: Path) -> None:
    guard = put(tmp_path / "safety-guardrail", {**GREET, "HOOK.yaml": "events: [agent:end]\n"})
    skill = put(tmp_path / "tea", {"SKILL.md": "---\nname: tea\ndescription: Tea.\n---\nSteep.\n"})
    shutil.copytree(guard, skill / "hooks" / "safety-guardrail")
    for words in (
        ("hooks", "install", str(guard), "--yes"),
        ("hooks", "publish", str(guard), str(tmp_path / "index.json")),
        ("skills", "install", str(skill), "--yes"),
    ):
        done = gateway.cli(*words)
        assert (done.returncode, "is the name of a hook that comes with the gateway" in done.stderr) == (1, True), words
    assert not gateway.home.hooks_lock.exists()


def test_a_hook_that_comes_with_it_keeps_its_place(gateway: GatewayProcess, greet: Path) -> None:
    """One of its name may have been installed by an earlier version."""
    gateway.cli("hooks", "install", str(greet), "--yes")
    lock = json.loads(gateway.home.hooks_lock.read_text())
    entry = lock["hooks"].pop("greet")
    place = Path(entry["path"]).with_name(Path(entry["path"]).name.replace("greet", "safety-guardrail"))
    Path(gateway.home.own_folder, entry["path"]).rename(gateway.home.own_folder / place)
    lock["hooks"]["safety-guardrail"] = {**entry, "path": str(place)}
    gateway.home.hooks_lock.write_text(json.dumps(lock))
    gateway.configure("hooks: {enabled: [safety-guardrail]}\n")
    gateway.start()
    assert gateway.call("hooks.info", {"name": "safety-guardrail"})["origin"] == "built-in"
    found = gateway.call("hooks.info", {"name": place.name})
    assert (found["origin"], found["state"]) == ("installed", "disabled")
    assert "replaces it" in found["reason"]


def test_two_of_one_name_do_not_take_each_others_place(gateway: GatewayProcess, tmp_path: Path) -> None:
    for place in ("one", "two"):
        put(tmp_path / place / "greet", GREET)
    assert gateway.cli("hooks", "install", str(tmp_path / "one" / "greet"), "--yes").returncode == 0
    done = gateway.cli("hooks", "install", str(tmp_path / "two" / "greet"), "--yes")
    assert (done.returncode, "hooks remove greet" in done.stderr) == (1, True)


def test_what_is_gone_from_where_it_came_stays_installed(gateway: GatewayProcess, greet: Path) -> None:
    gateway.cli("hooks", "install", str(greet), "--yes")
    shutil.rmtree(greet)
    done = gateway.cli("hooks", "update")
    assert (done.returncode, f"! greet: {greet} is not there, where it came from" in done.stderr) == (1, True)
    assert "put it back there" in done.stderr
    assert code_of(gateway) == HANDLER


def test_remove_leaves_nothing_of_it_but_its_data(gateway: GatewayProcess, greet: Path) -> None:
    gateway.start()
    gateway.cli("hooks", "install", str(greet), "--yes")
    done = gateway.cli("hooks", "remove", "greet")
    assert (done.returncode, "greet is removed" in done.stderr) == (0, True)
    assert "greet" not in {hook["name"] for hook in gateway.call("hooks.list")["hooks"]}
    assert (lock_of(gateway), [*gateway.home.installed_hooks.glob("greet@*")]) == ({}, [])
    again = gateway.cli("hooks", "remove", "greet")
    assert (again.returncode, "no hook greet is installed" in again.stderr) == (1, True)


def test_what_was_placed_by_hand_is_not_removed(gateway: GatewayProcess) -> None:
    placed = gateway.add_hook("greet", GREET)
    done = gateway.cli("hooks", "remove", "greet")
    assert (done.returncode, f"placed by hand: {placed}" in done.stderr) == (1, True)
    assert placed.exists()


@pytest.mark.row("T25")
def test_an_entry_that_cannot_be_read_is_kept_and_named(gateway: GatewayProcess, greet: Path, tmp_path: Path) -> None:
    guard = "name: guard\nintercepts: [llm:after]\non_error: deny\n"
    source = str(put(tmp_path / "guard", {**GREET, "HOOK.yaml": guard}))
    gateway.cli("hooks", "install", source, "--yes")
    gateway.home.hooks_lock.write_text(gateway.home.hooks_lock.read_text().replace('"deny"', '"denny"'))
    before = lock_of(gateway)["guard"]
    named = f"{gateway.home.hooks_lock}: hooks.guard: "
    done = gateway.cli("hooks", "install", str(greet), "--yes")
    assert (done.returncode, named in done.stderr, "install the hook again" in done.stderr) == (0, True, True)
    assert lock_of(gateway) == {"greet": lock_of(gateway)["greet"], "guard": before}
    gateway.cli("hooks", "remove", "greet")
    assert (lock_of(gateway), code_of(gateway, "guard")) == ({"guard": before}, HANDLER)
    frozen = gateway.cli("hooks", "freeze")
    assert (frozen.returncode, frozen.stdout, named in frozen.stderr) == (1, "", True)
    listed = json.loads(gateway.cli("hooks", "list", "--all", "--json").stdout)["hooks"]
    assert [named in hook["reason"] for hook in listed if hook["name"] == "guard"] == [True]
    assert "hooks.guard: " in gateway.cli("hooks", "list", "--all").stdout
    assert gateway.cli("hooks", "install", source, "--yes").returncode == 0
    assert lock_of(gateway)["guard"]["grants"]["on_error"] == "deny"
    gateway.home.hooks_lock.write_text(gateway.home.hooks_lock.read_text().replace('"deny"', '"denny"'))
    assert "or: hermes-gateway hooks remove guard" in gateway.cli("hooks", "install", str(greet), "--yes").stderr
    assert gateway.cli("hooks", "remove", "guard").returncode == 0
    assert ([*lock_of(gateway)], [*gateway.home.installed_hooks.glob("guard@*")]) == (["greet"], [])


@pytest.mark.row("T25")
def test_an_unreadable_lock_is_mended_as_its_error_says(gateway: GatewayProcess, greet: Path) -> None:
    gateway.cli("hooks", "install", str(greet), "--yes")
    before = gateway.home.hooks_lock.read_text()
    gateway.home.hooks_lock.write_text(before[:40])
    for words in (("install", str(greet), "--yes"), ("remove", "greet")):
        done = gateway.cli("hooks", *words)
        assert (done.returncode, "move it away and install all again" in done.stderr) == (1, True), done.stderr
    gateway.home.hooks_lock.rename(gateway.home.hooks_lock.with_suffix(".bad"))
    assert gateway.cli("hooks", "install", str(greet), "--yes").returncode == 0
    assert (gateway.home.hooks_lock.read_text(), code_of(gateway)) == (before, HANDLER)


def test_a_kill_between_folder_and_lock_leaves_what_was_there(gateway: GatewayProcess, greet: Path) -> None:
    """The folder is there first: who names it in the lock decides."""
    gateway.cli("hooks", "install", str(greet), "--yes")
    before = lock_of(gateway)
    left = gateway.home.installed_hooks / "greet@0123456789ab"
    shutil.copytree(gateway.home.own_folder / before["greet"]["path"], left)
    (gateway.home.installed_hooks / ".work-left").mkdir()
    gateway.start()
    assert [hook["name"] for hook in gateway.call("hooks.list")["hooks"] if hook["origin"] == "installed"] == ["greet"]
    put(greet, {"handler.py": HANDLER.replace("hello", "hullo")})
    assert gateway.cli("hooks", "update", "--yes").returncode == 0
    assert not left.exists()
    assert not [*gateway.home.installed_hooks.glob(".work*")]
    assert "hullo" in code_of(gateway)
