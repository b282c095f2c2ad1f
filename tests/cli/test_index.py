"""Hooks that are found by name, in a signed file: changed, old or expired, it installs nothing."""

import contextlib
import datetime
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gateway.installer.indexes import OWN_INDEX
from gateway.testing import GatewayProcess
from tests.cli.test_install import commit, lock_of
from tests.cli.typist import Typist
from tests.installer.archives import GREET, HANDLER, MANIFEST, put
from tests.installer.signed import Signer

pytestmark = pytest.mark.process

FIT = {**GREET, "README.md": "Says hello.\n", "LICENSE": "MIT\n", "test_greet.py": "def test_it(): ...\n"}


class Publisher:
    """The publisher of an index, in a folder."""

    def __init__(self, folder: Path, gateway: GatewayProcess, signer: Signer | None = None) -> None:
        self.folder, self.file = put(folder, {}), folder / "index.json"
        folder.mkdir(exist_ok=True)
        self._gateway, self.signer = gateway, signer or Signer()

    def publish(self, name: str = "greet", more: dict[str, str] | None = None, *words: str) -> dict[str, Any]:
        """A new version of a hook of theirs, in the index, signed."""
        manifest = MANIFEST.replace("name: greet", f"name: {name}")
        put(self.folder / name, {**FIT, "HOOK.yaml": manifest, **(more or {})})
        done = self._gateway.cli("hooks", "publish", str(self.folder / name), str(self.file), *words)
        assert done.returncode == 0, done.stderr
        self.signer.sign_file(self.file)
        return dict(json.loads(self.file.read_text()))

    def rewrite(self, **fields: Any) -> None:
        """Other words in it, signed too."""
        self.file.write_text(json.dumps({**json.loads(self.file.read_text()), **fields}))
        self.signer.sign_file(self.file)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Publisher]:
    """One who has published once; each test has a copy of that."""
    folder = tmp_path_factory.mktemp("published")
    with GatewayProcess(folder / "home") as gateway:
        gateway.home.root.mkdir(mode=0o700)
        publisher = Publisher(folder / "offered", gateway)
        publisher.publish()
        yield publisher


@pytest.fixture
def publisher(tmp_path: Path, gateway: GatewayProcess, published: Publisher) -> Publisher:
    folder = shutil.copytree(published.folder, tmp_path / "offered")
    return Publisher(folder, gateway, published.signer)


@dataclass(frozen=True)
class WebHost:
    """A server of a publisher's folder; `asked` are the requests."""

    url: str
    asked: list[str]


@pytest.fixture
def server(publisher: Publisher) -> Iterator[WebHost]:
    asked = list[str]()

    class Quiet(SimpleHTTPRequestHandler):
        def log_request(self, *_args: object) -> None:
            asked.append(self.path)

        def log_message(self, *_args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(publisher.folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield WebHost(f"http://127.0.0.1:{server.server_port}", asked)
        server.shutdown()
        thread.join()


def add(gateway: GatewayProcess, publisher: Publisher, address: str = "") -> str:
    address = address or str(publisher.file)
    done = gateway.cli("hooks", "index", "add", address, "--key", publisher.signer.line)
    assert done.returncode == 0, done.stderr
    return address


@pytest.mark.row("T25")
def test_a_hook_is_found_and_installed_by_its_name(gateway: GatewayProcess, publisher: Publisher) -> None:
    gateway.start()
    address = add(gateway, publisher)
    found = json.loads(gateway.cli("hooks", "search", "hello", "--json").stdout)["hooks"]
    assert [(one["name"], one["index"], one["version"]) for one in found] == [("greet", address, "1.0.0")]
    assert found[0]["asks"] == {"events": ["agent:end"], "uses": ["store"]}
    done = gateway.cli("hooks", "install", "greet", "--yes")
    assert (done.returncode, "greet is loaded" in done.stderr) == (0, True), done.stderr
    assert (lock_of(gateway)["greet"]["index"], lock_of(gateway)["greet"]["source"]) == (
        address,
        str(publisher.folder / "greet"),
    )


def test_a_folder_that_lies_here_is_not_taken_for_what_an_index_has(
    gateway: GatewayProcess, publisher: Publisher, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    (here / "greet").mkdir(parents=True)
    with contextlib.chdir(here):
        unknown = gateway.cli("hooks", "install", "greet", "--yes")
        assert (
            unknown.returncode,
            "no index has such a hook: greet; the folder here is ./greet" in unknown.stderr,
        ) == (
            1,
            True,
        )
        address = add(gateway, publisher)
        gateway.cli("hooks", "install", "greet", "--yes")
    assert lock_of(gateway)["greet"]["index"] == address


def test_what_comes_with_the_gateway_is_found_without_any_index(gateway: GatewayProcess) -> None:
    shown = gateway.cli("hooks", "search", "approval").stdout
    assert "tool-approval 1.0.0\n  Ask in the chat before certain tools run\n" in shown
    done = gateway.cli("hooks", "install", "tool-approval", "--yes")
    assert (done.returncode, "decides on  tool:before" in done.stdout) == (0, True), done.stderr
    assert gateway.cli("hooks", "outdated").stdout.strip() == "everything that is installed is up to date"
    nothing = gateway.cli("hooks", "search", "no such word")
    assert (nothing.stdout, "no index has a hook with that" in nothing.stderr) == ("", True)


@pytest.mark.row("T25")
@pytest.mark.parametrize("kind", ["git", "git archive", "web"])
def test_it_lies_in_a_repository_or_on_any_web_host(
    gateway: GatewayProcess, publisher: Publisher, server: WebHost, kind: str
) -> None:
    if kind == "git archive":
        publisher.publish("greet", None, "--archive")
    if kind != "web":
        (publisher.folder / "LICENSE").symlink_to("greet/LICENSE")  # of all else in there nothing is looked at
        commit(publisher.folder, {})
        address = f"git+file://{publisher.folder}#index.json"
    else:
        address = f"{server.url}/index.json"
        add(gateway, publisher, address)
        folder = gateway.cli("hooks", "install", "greet", "--yes")
        assert (folder.returncode, f"{address} names the folder ./greet" in folder.stderr) == (1, True), folder.stderr
        publisher.publish("greet", None, "--archive")
        archive = publisher.folder / "greet-1.0.0.tar.gz"
        made, modes = archive.read_bytes(), {path.stat().st_mode & 0o777 for path in (archive, publisher.file)}
        assert modes == {publisher.file.with_name("index.json.sig").stat().st_mode & 0o777}
        publisher.publish("greet", None, "--archive")
        assert archive.read_bytes() == made
    if kind != "web":
        add(gateway, publisher, address)
    done = gateway.cli("hooks", "install", "greet", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    source = lock_of(gateway)["greet"]["source"]
    if kind != "web":
        head, name = lock_of(gateway)["greet"]["commit"], "greet" if kind == "git" else "greet-1.0.0.tar.gz"
        assert source == f"git+file://{publisher.folder}@{head}#{name}"
    else:
        assert source == f"{server.url}/greet-1.0.0.tar.gz"


def test_an_update_comes_by_the_index_alone(gateway: GatewayProcess, publisher: Publisher, tmp_path: Path) -> None:
    address = add(gateway, publisher)
    gateway.cli("hooks", "install", "greet", "--yes")
    put(publisher.folder / "greet", {"handler.py": HANDLER.replace("hello", "unlisted")})
    refused = gateway.cli("hooks", "update", "greet", "--yes")
    assert (refused.returncode, f"is not what {address} names" in refused.stderr) == (1, True)
    publisher.publish("greet", {"handler.py": HANDLER.replace("hello", "hullo")})
    told = gateway.cli("hooks", "update", "--yes")
    assert (told.returncode, "hullo" in told.stdout) == (0, True), told.stderr
    # It is mended from where it lies, too, and goes on coming by its index.
    file = gateway.home.own_folder / lock_of(gateway)["greet"]["path"] / "handler.py"
    file.chmod(0o600)
    file.write_text("planted\n")
    again = gateway.cli("hooks", "install", lock_of(gateway)["greet"]["source"], "--yes")
    assert (again.returncode, "hullo" in file.read_text(), lock_of(gateway)["greet"]["index"]) == (0, True, address)
    # Another index that has a hook of this name is not asked for what came by the first one.
    other = Publisher(tmp_path / "other", gateway)
    other.publish("greet", {"handler.py": HANDLER.replace("hello", "taken over")})
    add(gateway, other)
    assert gateway.cli("hooks", "index", "remove", address).returncode == 0
    unknown = f"no index {address} was added here, and greet comes by it"
    remedy = f"add it: hermes-gateway hooks index add {address} --key KEY"
    assert f"{unknown}; {remedy}" in gateway.cli("hooks", "outdated").stdout
    gone = gateway.cli("hooks", "update", "--yes")
    assert (gone.returncode, f"{unknown}\n{remedy}" in gone.stderr) == (1, True), gone.stderr
    replaced = gateway.cli("hooks", "install", "greet", "--yes")
    assert (replaced.returncode, f"greet is installed, from {address}" in replaced.stderr) == (1, True)


@pytest.mark.parametrize("how", ["gone", "signed by another", "ended"])
def test_an_index_that_does_not_count_keeps_no_other_hook_from_its_update(
    gateway: GatewayProcess, publisher: Publisher, tmp_path: Path, how: str
) -> None:
    address = add(gateway, publisher)
    gateway.cli("hooks", "install", "greet", "--yes")
    wave = put(tmp_path / "wave", {"HOOK.yaml": MANIFEST.replace("greet", "wave"), "handler.py": HANDLER})
    gateway.cli("hooks", "install", str(wave), "--yes")
    put(wave, {"handler.py": HANDLER.replace("hello", "hullo")})
    spoil(publisher, how)
    done = gateway.cli("hooks", "update", "--yes")
    assert (done.returncode, f"! greet: {address}" in done.stderr) == (1, True), done.stderr
    assert (gateway.home.own_folder / lock_of(gateway)["wave"]["path"] / "handler.py").read_text() != HANDLER
    told = json.loads(gateway.cli("hooks", "update", "--check", "--json").stdout)
    assert (told["updated"], told["left"], [*told["failed"]]) == ([], [], ["greet"])


def test_an_index_is_read_once_in_a_command_and_named_where_it_cannot_be(
    gateway: GatewayProcess, publisher: Publisher, server: WebHost
) -> None:
    for name in ("greet", "wave"):
        publisher.publish(name, None, "--archive")
    address = add(gateway, publisher, f"{server.url}/index.json")
    for name in ("greet", "wave"):
        assert gateway.cli("hooks", "install", name, "--yes").returncode == 0
    publisher.file.with_name("index.json.sig").unlink()
    unsigned = gateway.cli("hooks", "search", "greet").stderr
    assert f"{address}.sig cannot be fetched: HTTP Error 404" in unsigned
    assert "its owner has to sign it" in unsigned
    publisher.file.unlink()
    for words in (("hooks", "update", "--yes"), ("hooks", "outdated")):
        server.asked.clear()
        told = gateway.cli(*words)
        assert server.asked == ["/index.json"]
        assert (told.stdout + told.stderr).count(address) == 2, told
    found = gateway.cli("hooks", "install", "tool-approval", "--yes")
    assert (found.returncode, f"! {address}" in found.stderr) == (0, True), found.stderr


def test_that_one_is_read_is_told_when_it_lasts(gateway: GatewayProcess, publisher: Publisher) -> None:
    add(gateway, publisher)
    with socket.create_server(("127.0.0.1", 0)) as server:  # it answers nobody
        address = f"http://127.0.0.1:{server.getsockname()[1]}/index.json"
        file = gateway.home.hook_indexes
        file.write_text(file.read_text().replace(str(publisher.file), address))
        another = ("add", f"{address}?more", "--key", publisher.signer.line)
        for words, what in (("search", "greet"), "the indexes"), (("index", *another), address):
            with Typist(gateway, "hooks", *words) as typist:
                typist.sees(f"reading {what}")


def test_what_came_with_another_installation_of_the_gateway_is_found_in_this_one(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    """The samples lie elsewhere on each machine, and after an upgrade."""
    gateway.cli("hooks", "install", "tool-approval", "--yes")
    here = str(OWN_INDEX.parent.parent)
    frozen = gateway.cli("hooks", "freeze")
    assert (frozen.stderr, here in frozen.stdout) == ("", True)
    file = put(tmp_path, {"frozen.json": frozen.stdout.replace(here, "/elsewhere")}) / "frozen.json"
    with GatewayProcess(tmp_path / "other") as other:
        other.home.root.mkdir(mode=0o700)
        done = other.cli("hooks", "sync", str(file), "--yes")
        assert (done.returncode, lock_of(other)) == (0, lock_of(gateway)), done.stderr
        assert "all is as it was frozen" in other.cli("hooks", "sync", str(file), "--yes").stderr
        other.home.hooks_lock.write_text(other.home.hooks_lock.read_text().replace(here, "/elsewhere"))
        assert "is installed as it is there" in other.cli("hooks", "update", "--yes").stderr
        assert other.cli("hooks", "install", "tool-approval", "--yes").returncode == 0


@pytest.mark.row("T25")
def test_a_frozen_file_claims_no_index_that_did_not_give_the_hook(
    gateway: GatewayProcess, publisher: Publisher, tmp_path: Path
) -> None:
    """By it all updates would come, and whoever is asked would trust it."""
    address = add(gateway, publisher)
    gateway.cli("hooks", "install", "greet", "--yes")
    frozen = put(tmp_path, {"frozen.json": gateway.cli("hooks", "freeze").stdout}) / "frozen.json"
    with GatewayProcess(tmp_path / "other") as other:
        other.home.root.mkdir(mode=0o700)

        def sync() -> tuple[str, str]:
            done = other.cli("hooks", "sync", str(frozen), "--yes")
            assert done.returncode == 0, done.stderr
            return lock_of(other)["greet"].get("index", ""), done.stdout + done.stderr

        for _ in range(2):  # the same file again changes nothing
            index, said = sync()
            assert (index, f"the file says it came by {address}, which was not added here" in said) == ("", True), said
        assert (f"first add it: hermes-gateway hooks index add {address}" in said, "all is as" in said) == (True, True)
        add(other, publisher)
        index, said = sync()
        assert (index, f"listed by  {address}" in said, "! greet" in said) == (address, True, False), said
        assert "all is as it was frozen" in sync()[1]
        other.cli("hooks", "remove", "greet")
        publisher.publish("wave")
        publisher.rewrite(hooks={})
        index, said = sync()
        assert (index, f"{address}, which does not list this version: it is from" in said) == ("", True), said
        other.cli("hooks", "remove", "greet")
        spoil(publisher, "signed by another")
        refused = other.cli("hooks", "sync", str(frozen), "--yes")
        assert (refused.returncode, address in refused.stderr, lock_of(other)) == (1, True, {}), refused.stderr


def test_of_two_that_differ_neither_is_chosen(gateway: GatewayProcess, publisher: Publisher, tmp_path: Path) -> None:
    other = Publisher(tmp_path / "other", gateway)
    other.publish("greet", {"handler.py": HANDLER.replace("hello", "other")})
    for one in (publisher, other):
        add(gateway, one)
    done = gateway.cli("hooks", "install", "greet", "--yes")
    assert done.returncode == 1
    for one in (publisher, other):
        assert f"hermes-gateway hooks install {one.folder / 'greet'}" in done.stderr


@pytest.mark.row("T25")
def test_whoever_lists_the_same_does_not_come_before_those_that_were_there(
    gateway: GatewayProcess, publisher: Publisher, tmp_path: Path
) -> None:
    """Updates come by the index that gave it: one that lists what others offer would give their next version."""
    own = json.loads(OWN_INDEX.read_text())["hooks"]["tool-approval"]
    shutil.copytree(OWN_INDEX.parent / "tool-approval", publisher.folder / "tool-approval")
    other = Publisher(shutil.copytree(publisher.folder, tmp_path / "other"), gateway)
    other.rewrite(hooks={**json.loads(other.file.read_text())["hooks"], "tool-approval": own})
    first, _ = add(gateway, publisher), add(gateway, other)
    publisher.publish("wave")
    assert gateway.cli("hooks", "search", "wave").returncode == 0  # a new number of the first one was seen
    for name in ("greet", "tool-approval"):
        assert gateway.cli("hooks", "install", name, "--yes").returncode == 0
    assert [lock_of(gateway)[name]["index"] for name in ("greet", "tool-approval")] == [first, str(OWN_INDEX)]


YESTERDAY = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)).date().isoformat()


def spoil(publisher: Publisher, how: str) -> None:
    """Change an index as an attacker would."""
    match how:
        case "changed":
            publisher.file.write_text(publisher.file.read_text().replace("Says hello", "Says hullo"))
        case "signed by another":
            Signer().sign_file(publisher.file)
        case "signed for another purpose":
            publisher.signer.sign_file(publisher.file, b"file")
        case "gone":
            publisher.file.unlink()
        case "not signed":
            publisher.file.with_name("index.json.sig").unlink()
        case "no index":
            publisher.file.write_text("[" * 100_000)
            publisher.signer.sign_file(publisher.file)
        case "huge":
            publisher.file.write_bytes(b" " * (9 << 20))
        case _:
            publisher.rewrite(**SPOILED[how][0])


SPOILED: dict[str, tuple[dict[str, Any], str]] = {
    "changed": ({}, "changed after it was signed"),
    "signed by another": ({}, "another key"),
    "signed for another purpose": ({}, "signed for something else"),
    "not signed": ({}, "has no signature: index.json.sig beside it: No such file"),
    "no index": ({}, "cannot be read"),
    "huge": ({}, "is larger than"),
    "ended": ({"expires": YESTERDAY, "number": 9}, "counts no more since"),
    "without an end": ({"expires": "", "number": 9}, "does not say when it ends"),
    "older": ({"number": 0}, "an old one that passes for new"),
    "published twice": ({"number": 1, "hooks": {}}, "an old one that passes for new"),
    "of another version": ({"version": 2}, "of version 2"),
}


@pytest.mark.row("T25")
@pytest.mark.parametrize("how", SPOILED)
def test_one_that_does_not_count_installs_nothing(gateway: GatewayProcess, publisher: Publisher, how: str) -> None:
    add(gateway, publisher)
    spoil(publisher, how)
    done = gateway.cli("hooks", "install", "greet", "--yes")
    assert (done.returncode, SPOILED[how][1] in done.stderr) == (1, True), done.stderr
    assert not gateway.home.hooks_lock.exists()
    searched = gateway.cli("hooks", "search", "approval")
    assert "tool-approval" in searched.stdout
    assert SPOILED[how][1] in searched.stderr


@pytest.mark.row("T25")
def test_an_old_one_is_not_passed_off_as_new(gateway: GatewayProcess, publisher: Publisher) -> None:
    add(gateway, publisher)
    kept = publisher.folder.with_name("kept")
    shutil.copytree(publisher.folder, kept)
    publisher.publish("greet", {"handler.py": HANDLER.replace("hello", "mended")})
    assert gateway.cli("hooks", "search", "hello").returncode == 0
    shutil.rmtree(publisher.folder)
    shutil.copytree(kept, publisher.folder)
    done = gateway.cli("hooks", "install", "greet", "--yes")
    assert (done.returncode, "is number 1, and number 2 was seen before" in done.stderr) == (1, True), done.stderr


@pytest.mark.row("T25")
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("./../elsewhere", "leads out of the index"),
        (".//etc", "leads out of the index"),
        ("/etc", "is not a place"),
        ("~/hooks", "is not a place"),
        ("git+ext::sh -c id", "names no repository"),
        ("http://example.org/x.zip", "is not a place"),
    ],
)
def test_where_a_listed_hook_lies_is_looked_at(
    gateway: GatewayProcess, publisher: Publisher, source: str, said: str
) -> None:
    add(gateway, publisher)
    hooks = json.loads(publisher.file.read_text())["hooks"]
    publisher.rewrite(hooks={"greet": {**hooks["greet"], "source": source}}, number=2)
    done = gateway.cli("hooks", "install", "greet", "--yes")
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("key", ["", "ssh-rsa AAAA", "nothing"])
def test_an_index_is_added_with_a_key_alone(gateway: GatewayProcess, publisher: Publisher, key: str) -> None:
    done = gateway.cli("hooks", "index", "add", str(publisher.file), "--key", key)
    assert (done.returncode, "ssh-ed25519" in done.stderr) == (1, True), done.stderr
    assert not gateway.home.hook_indexes.exists()


def test_indexes_are_listed_and_removed(gateway: GatewayProcess, publisher: Publisher, tmp_path: Path) -> None:
    key = put(tmp_path / "keys", {"key.pub": publisher.signer.line}) / "key.pub"
    address = str(publisher.file)
    done = gateway.cli("hooks", "index", "add", address, "--key", str(key), "--json")
    assert json.loads(done.stdout)["hooks"] == ["greet"]
    twice = gateway.cli("hooks", "index", "add", address, "--key", str(key))
    assert (twice.returncode, "is known" in twice.stderr) == (1, True)
    listed = json.loads(gateway.cli("hooks", "index", "list", "--json").stdout)["indexes"]
    assert (listed[0]["address"], listed[0]["number"]) == (address, 1)
    assert "ours" in gateway.cli("hooks", "index", "list").stdout
    assert gateway.cli("hooks", "index", "remove", address, "--json").returncode == 0
    again = gateway.cli("hooks", "index", "remove", address)
    assert (again.returncode, f"no index {address} was added" in again.stderr) == (1, True)


@pytest.mark.parametrize(
    ("missing", "said"),
    [("README.md", "it has no README"), ("LICENSE", "it has no LICENSE"), ("test_greet.py", "it has no test")],
)
def test_what_is_not_fit_for_others_is_not_published(
    gateway: GatewayProcess, tmp_path: Path, missing: str, said: str
) -> None:
    folder = put(tmp_path / "greet", {name: text for name, text in FIT.items() if name != missing})
    done = gateway.cli("hooks", "publish", str(folder), str(tmp_path / "index.json"))
    assert (done.returncode, said in done.stderr) == (1, True)
    assert not (tmp_path / "index.json").exists()


def test_what_a_repository_leaves_out_is_not_published_by_it(gateway: GatewayProcess, publisher: Publisher) -> None:
    """Others would get another folder than the one that was hashed."""
    put(publisher.folder, {".gitignore": ".env\n__pycache__\n", "greet/.env": "KEY=1", "greet/new.py": "x = 1\n"})
    put(publisher.folder / "greet", {"__pycache__/x.pyc": "none of the hook"})
    commit(publisher.folder, {})
    words = ("hooks", "publish", str(publisher.folder / "greet"), str(publisher.file))
    refused = gateway.cli(*words)
    assert (refused.returncode, refused.stderr.count("git leaves out")) == (1, 1), refused.stderr
    assert "git leaves out .env, which is a part of it here" in refused.stderr
    (publisher.folder / "greet" / ".env").unlink()
    assert gateway.cli(*words).returncode == 0


def test_what_is_published_is_signed_anew_each_time(gateway: GatewayProcess, publisher: Publisher) -> None:
    put(publisher.folder / "greet", {"handler.py": HANDLER.replace("hello", "hullo")})
    words = ("hooks", "publish", str(publisher.folder / "greet"), str(publisher.file))
    done = gateway.cli(*words)
    assert f"ssh-keygen -Y sign -n hermes-hooks -f KEY {publisher.file}" in done.stderr
    assert not publisher.file.with_name("index.json.sig").exists()
    assert json.loads(gateway.cli(*words, "--json").stdout)["number"] == 3
    away = gateway.cli("hooks", "publish", str(publisher.folder / "greet"), str(publisher.folder / "x" / "index.json"))
    assert (away.returncode, "--source git+https://" in away.stderr) == (1, True)
