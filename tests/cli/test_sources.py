"""`hooks install` from each kind of place on loopback: what is honest is installed, what is hostile leaves nothing.

| from                  | honest                     | hostile                                          |
|-----------------------|----------------------------|--------------------------------------------------|
| a folder              | test_install               | `FOLDERS`                                        |
| an archive by path    | test_an_archive...         | `ARCHIVES`, also tests/installer/test_archive    |
| an archive by address | test_an_archive...         | `ARCHIVES`, `ADDRESSES`                          |
| git+file, git+http,   | test_a_repository...       | `REPOSITORIES`, `ADDRESSES`, a moved tag,        |
| git+https, git+ssh    | (ssh: a real sshd)         | submodules, programs of the repository           |
| package:              | test_a_package...          | `PACKAGES`, what a wheel would have run          |
| a name of an index    | test_index                 | test_index: signature, number, end, digest, place |
| an update             | test_install               | test_install: each thing that one can ask for    |

With the packages that came with it an installed hook runs in the gateway, from a folder and from `package:`.
"""

import hashlib
import json
import os
import stat
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.hooks.manifests.installed import remove_login
from gateway.testing import GatewayProcess
from tests.cli.test_install import commit, git, lock_of
from tests.cli.typist import Typist
from tests.installer.archives import GREET, HANDLER, MANIFEST, make_tar, make_wheel, make_zip, offer, put
from tests.installer.servers import SSHD, make_certificate, serve_folder, serve_ssh

pytestmark = [pytest.mark.process, pytest.mark.row("T25")]

POINTS = "[hermes_gateway.hooks]\ngreet = greetings.greet\n"
PACKAGE = {"greetings/__init__.py": "", **{f"greetings/greet/{name}": text for name, text in GREET.items()}}
MORE_THAN_ALLOWED = 65 << 20
WITHOUT_SSHD = (pytest.mark.wants("an sshd"), pytest.mark.skip(reason="there is no sshd"))
by_ssh = pytest.param("git+ssh", marks=() if SSHD else WITHOUT_SSHD)
THOROUGH_SSH = pytest.param("git+ssh", marks=(pytest.mark.thorough, *by_ssh.marks))


@dataclass(frozen=True)
class Place:
    """A folder of strangers that is served in each way. `ran` must never exist."""

    folder: Path
    http: str
    https: str
    ran: Path


@pytest.fixture
def place(tmp_path: Path, gateway: GatewayProcess) -> Iterator[Place]:
    folder = tmp_path / "offered"
    folder.mkdir()
    certificate = make_certificate(tmp_path / "host.pem")
    gateway.environ |= {"SSL_CERT_FILE": str(certificate), "GIT_SSL_CAINFO": str(certificate)}
    with serve_folder(folder) as http, serve_folder(folder, certificate) as https:
        gateway.environ |= {"PIP_INDEX_URL": f"{http}/simple/", "PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "0"}
        yield Place(folder, http, https, tmp_path / "ran")


@pytest.fixture
def address(request: pytest.FixtureRequest, place: Place, gateway: GatewayProcess, tmp_path: Path) -> Iterator[str]:
    """By which way one gets at `place.folder`."""
    match request.param:
        case "path":
            yield str(place.folder)
        case "git+file":
            yield f"git+file://{place.folder}"
        case "git+ssh":
            with serve_ssh(tmp_path / "ssh", gateway) as ssh:
                yield f"git+{ssh}{place.folder}"
        case way:
            yield f"{'git+' if way.startswith('git+') else ''}{place.https if way.endswith('https') else place.http}"


by_web = pytest.mark.parametrize("address", ["path", "http", "https"], indirect=True)
by_git = pytest.mark.parametrize("address", ["git+file", "git+http", "git+https", by_ssh], indirect=True)
by_git_thoroughly = pytest.mark.parametrize(  # what git brought is looked at in the same way, however it came
    "address",
    ["git+file", *(pytest.param(way, marks=pytest.mark.thorough) for way in ("git+http", "git+https")), THOROUGH_SSH],
    indirect=True,
)


def refuse(gateway: GatewayProcess, place: Place, source: str, said: str) -> None:
    """It says what is wrong, and nothing of it is there afterwards or has run."""
    done = gateway.cli("hooks", "install", source, "--yes")
    assert (done.returncode, said in done.stderr) == (1, True), (done.stdout, done.stderr)
    assert "\x1b" not in done.stdout + done.stderr
    assert not gateway.home.hooks_lock.exists()
    assert [*gateway.home.installed_hooks.iterdir()] == []
    assert not place.ran.exists()


def take(gateway: GatewayProcess, source: str) -> None:
    """It is installed, and its source is what was written."""
    done = gateway.cli("hooks", "install", source, "--yes")
    assert done.returncode == 0, done.stderr
    found = lock_of(gateway)["greet"]
    assert found["source"] == source
    assert (gateway.home.own_folder / found["path"] / "handler.py").read_text() == HANDLER


def publish(place: Place, files: dict[str, str], change: Callable[[Path], object] = lambda _: None) -> str:
    """A repository, as `greet.git` beside the other things; the commit."""
    work = place.folder / "work"
    change(put(work, files))
    commit(work, {})
    git(place.folder, "clone", "-q", "--bare", str(work), "greet.git")
    return git(work, "rev-parse", "HEAD")


def member(name: str, kind: bytes, leads_to: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, leads_to
    return made


@by_web
@pytest.mark.parametrize("name", ["greet-1.0.tar.gz", "greet-1.0.zip"])
def test_an_archive_is_installed(gateway: GatewayProcess, place: Place, address: str, name: str) -> None:
    make = make_zip if name.endswith("zip") else make_tar
    make(place.folder / name, {f"greet-1.0/{file}": text for file, text in GREET.items()})
    take(gateway, f"{address}/{name}")


ARCHIVES: dict[str, tuple[Callable[[Path], object], str]] = {
    "zip-leads-out": (lambda path: make_zip(path, {**GREET, "../../out.py": "x"}), "leads out of its folder"),
    "tar-leads-out": (lambda path: make_tar(path, {**GREET, "../../out.py": "x"}), "leads out of its folder"),
    "zip-absolute": (lambda path: make_zip(path, {**GREET, "/tmp/out.py": "x"}), "leads out of its folder"),
    "tar-absolute": (lambda path: make_tar(path, {**GREET, "/tmp/out.py": "x"}), "leads out of its folder"),
    "zip-link": (lambda path: make_zip(path, {**GREET, "x": "/etc/passwd"}, {"x": stat.S_IFLNK | 0o777}), "a link"),
    "tar-link": (lambda path: make_tar(path, GREET, member("x", tarfile.SYMTYPE, "/etc/passwd")), "a link"),
    "tar-hard-link": (lambda path: make_tar(path, GREET, member("x", tarfile.LNKTYPE, "/etc/passwd")), "a link"),
    "tar-device": (lambda path: make_tar(path, GREET, member("x", tarfile.CHRTYPE)), "a device"),
    "tar-pipe": (lambda path: make_tar(path, GREET, member("x", tarfile.FIFOTYPE)), "a device"),
    "zip-bomb": (lambda path: make_zip(path, {**GREET, "x": "\0" * MORE_THAN_ALLOWED}), "more than 64 MB"),
    "tar-bomb": (lambda path: make_tar(path, {**GREET, "x": "\0" * MORE_THAN_ALLOWED}), "more than 64 MB"),
    "zip-many": (lambda path: make_zip(path, {**GREET, **dict.fromkeys(map(str, range(5001)), "")}), "5000 files"),
    "tar-many": (lambda path: make_tar(path, {**GREET, **dict.fromkeys(map(str, range(5001)), "")}), "5000 files"),
    "zip-control": (lambda path: make_zip(path, {**GREET, "\x1b[2Jx.py": "x"}), "cannot be shown"),
    "tar-control": (lambda path: make_tar(path, {**GREET, "\x1b[2Jx.py": "x"}), "cannot be shown"),
    "zip-two-spellings": (lambda path: make_zip(path, {**GREET, "HANDLER.py": "x"}), "two spellings"),
    "zip-large": (lambda path: path.write_bytes(os.urandom(1 << 20) * 65), "larger than"),
    "zip-nothing": (lambda path: path.write_bytes(b"<html>not found</html>"), "not an archive"),
}


@pytest.mark.parametrize("address", ["path", "https"], indirect=True)
@pytest.mark.parametrize("how", ARCHIVES)
def test_a_hostile_archive_is_refused(gateway: GatewayProcess, place: Place, address: str, how: str) -> None:
    make, said = ARCHIVES[how]
    name = f"greet.{'zip' if how.startswith('zip') else 'tar.gz'}"
    make(place.folder / name)
    refuse(gateway, place, f"{address}/{name}", said)


FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "link-out": (lambda folder: (folder / "x").symlink_to("/etc/passwd"), "leads out of the folder"),
    "link-up": (lambda folder: (folder / "x").symlink_to("../secret"), "leads out of the folder"),
    "pipe": (lambda folder: os.mkfifo(folder / "x"), "is not a file"),
    "huge": (lambda folder: (folder / "x").write_bytes(b"\0" * MORE_THAN_ALLOWED), "more than 64 MB"),
    "many": (lambda folder: put(folder, dict.fromkeys(map(str, range(5001)), "")), "5000 files"),
    "control": (lambda folder: put(folder, {"\x1b[2Jx.py": "x"}), "cannot be shown"),
    "broken": (lambda folder: put(folder, {"HOOK.yaml": "events: [\x1b[2J"}), "would not run"),
}


@pytest.mark.parametrize("how", FOLDERS)
def test_a_hostile_folder_is_refused(gateway: GatewayProcess, place: Place, how: str) -> None:
    change, said = FOLDERS[how]
    change(put(place.folder / "greet", GREET))
    refuse(gateway, place, str(place.folder / "greet"), said)


@by_git
def test_a_repository_is_installed_and_a_moved_tag_is_shown(
    gateway: GatewayProcess, place: Place, address: str
) -> None:
    first = publish(place, {f"hooks/greet/{name}": text for name, text in GREET.items()})
    bare, work = place.folder / "greet.git", place.folder / "work"
    git(bare, "tag", "v1")
    take(gateway, f"{address}/greet.git@v1#hooks/greet")
    assert lock_of(gateway)["greet"]["commit"] == first
    second = commit(work, {"hooks/greet/handler.py": HANDLER.replace("hello", "owned")})
    git(work, "push", "-q", str(bare), "main", "+HEAD:refs/tags/v1")
    assert f"{first[:12]} -> {second[:12]}" in gateway.cli("hooks", "outdated").stdout
    assert lock_of(gateway)["greet"]["commit"] == first


def add_submodule(folder: Path) -> None:
    """One whose address would run something."""
    put(folder, {".gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = ext::sh -c touch% {folder.parents[1]}/ran\n'})
    commit(folder, {})
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{git(folder, 'rev-parse', 'HEAD')},x")
    git(folder, "commit", "-qm", "submodule")


REPOSITORIES: dict[str, tuple[Callable[[Path], object], str]] = {
    "link-out": (lambda folder: (folder / "x").symlink_to("/etc/passwd"), "a link or a device"),
    "huge": (lambda folder: (folder / "x").write_bytes(b"\0" * MORE_THAN_ALLOWED), "more than 64 MB"),
    "many": (lambda folder: put(folder, dict.fromkeys(map(str, range(5001)), "")), "5000 files"),
    "control": (lambda folder: put(folder, {"\x1b[2Jx.py": "x"}), "cannot be shown"),
}


@by_git_thoroughly
@pytest.mark.parametrize("how", REPOSITORIES)
def test_a_hostile_repository_is_refused(gateway: GatewayProcess, place: Place, address: str, how: str) -> None:
    change, said = REPOSITORIES[how]
    publish(place, GREET, change)
    refuse(gateway, place, f"{address}/greet.git", said)


@by_git
def test_nothing_of_a_repository_runs_and_its_submodules_are_not_fetched(
    gateway: GatewayProcess, place: Place, address: str, tmp_path: Path
) -> None:
    """Nor does a program of whoever installs it, since it says so."""
    put(tmp_path / "home", {".gitconfig": f'[filter "evil"]\nsmudge = "touch {place.ran}"\n'})
    gateway.environ["HOME"] = str(tmp_path / "home")
    publish(place, {**GREET, ".gitattributes": "* filter=evil\n"}, add_submodule)
    bare = place.folder / "greet.git"
    for name in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        put(bare / "hooks", {name: f"#!/bin/sh\ntouch {place.ran}\n"})
        (bare / "hooks" / name).chmod(0o755)
    git(bare, "config", "filter.evil.smudge", f"touch {place.ran}")
    git(bare, "config", "core.sshCommand", f"touch {place.ran}")
    take(gateway, f"{address}/greet.git")
    assert not place.ran.exists()
    assert not (gateway.home.own_folder / lock_of(gateway)["greet"]["path"] / "x").exists()


ADDRESSES = [
    ("{https}/endless.zip", "is larger than"),
    ("{http}/away.zip", "fetched over https"),
    ("{https}/led/{http}/greet.zip", "is not https"),
    ("git+http://example.org/greet.git", "over https or ssh"),
    ("git+{https}/led/{other}/greet.git", "leads to another host"),
    ("git+{https}/led/{other}/greet.git@main", "if that is meant, write git+https://127.0.0.1:"),
    ("git+{https}/led/{http}/greet.git", 'Protocol "http" not supported'),
    ("{https}/nowhere.zip", "404"),
    ("git+{https}/nowhere.git", "git fetch"),
    ("git+{http}/away/greet.git", "git fetch"),
    ("git+{https}/greet.git@--upload-pack=touch%20{ran}", "is not a repository"),
    ("git+{https}/greet.git@nothing", "no branch, tag or commit nothing"),
    ("git+ssh://-oProxyCommand=touch%20{ran}/greet.git", "strange hostname"),
    ("git+file://{folder}/greet.git#../../etc", "is not a folder in there"),
    ("git+file://{folder}/greet.git#nowhere", "nowhere"),
]


@pytest.mark.parametrize(("source", "said"), ADDRESSES)
def test_an_address_that_leads_astray_is_refused(gateway: GatewayProcess, place: Place, source: str, said: str) -> None:
    publish(place, GREET)
    make_zip(place.folder / "greet.zip", GREET)
    where = {"http": place.http, "https": place.https, "folder": place.folder, "ran": place.ran}
    with serve_folder(place.folder, Path(gateway.environ["SSL_CERT_FILE"])) as other:
        refuse(gateway, place, source.format(**where, other=other), said)


def test_a_repository_that_was_renamed_on_its_host_is_found(gateway: GatewayProcess, place: Place) -> None:
    """Hosts lead from the old name to the new one, and some from an address without .git to that with it."""
    publish(place, GREET)
    take(gateway, f"git+{place.https}/led/{place.https}/greet.git")


WITH_TOKENS = [
    ("git+https://anna:s3cret@127.0.0.1:1/greet.git@v1#x", "git+https://127.0.0.1:1/greet.git@v1#x"),
    ("git+https://s3cret@127.0.0.1:1/greet.git", "git+https://127.0.0.1:1/greet.git"),
    ("git+ssh://git:s3cret@127.0.0.1:1/greet.git", "git+ssh://git@127.0.0.1:1/greet.git"),
    ("https://anna:s3cret@127.0.0.1:1/greet.zip", "https://127.0.0.1:1/greet.zip"),
    ("https://127.0.0.1:1/greet.zip?ref=v1&sig=s3cret&at=2#x", "https://127.0.0.1:1/greet.zip?ref=v1&at=2#x"),
]


@pytest.mark.parametrize(("source", "bare"), WITH_TOKENS)
def test_a_token_in_an_address_is_kept_nowhere_and_never_shown(
    gateway: GatewayProcess, place: Place, source: str, bare: str
) -> None:
    """Where an earlier version kept it, it is passed on no more."""
    refuse(gateway, place, source, f"{bare} was written with a password or a token")
    take(gateway, str(put(place.folder / "greet", GREET)))
    lock = json.loads(gateway.home.hooks_lock.read_text())
    lock["hooks"]["greet"]["source"] = source
    gateway.home.hooks_lock.write_text(json.dumps(lock))
    said = [gateway.cli("hooks", verb) for verb in ("freeze", "outdated", "update")]
    said.append(gateway.cli("hooks", "install", str(place.folder / "greet"), "--yes"))
    assert bare in said[0].stdout
    said.append(gateway.cli("hooks", "index", "add", source, "--key", "x"))
    assert bare in said[-1].stderr
    assert not [one for one in said if "s3cret" in one.stdout + one.stderr]


@pytest.mark.parametrize(
    ("address", "bare"),
    [
        *WITH_TOKENS,
        ("https://host/greet.zip?token=s3cret", "https://host/greet.zip"),
        ("https://host/greet.zip?X-Amz-Signature=s3cret;ref=v1", "https://host/greet.zip?ref=v1"),
        ("git+https://host/greet.git?access%5Ftoken=s3cret#x", "git+https://host/greet.git#x"),
        ("https://host/greet.zip?author=anna&monkey=1#token=1", "https://host/greet.zip?author=anna&monkey=1#token=1"),
        ("/srv/what?token=1.zip", "/srv/what?token=1.zip"),
    ],
)
def test_what_is_secret_is_taken_out_of_an_address(address: str, bare: str) -> None:
    assert remove_login(address) == bare


def test_the_repository_whose_hook_installs_one_stays_as_it_is(
    gateway: GatewayProcess, place: Place, tmp_path: Path
) -> None:
    """git tells its hooks by variables in which repository they run."""
    first = publish(place, GREET)[:12]
    own = tmp_path / "own"
    commit(own, {"mine": ""})
    git(own, "checkout", "-q", "--detach")
    refs = git(own, "for-each-ref")
    gateway.environ |= {"GIT_DIR": str(own / ".git"), "GIT_INDEX_FILE": str(own / ".git" / "index")}
    take(gateway, f"git+file://{place.folder}/greet.git@{first}")
    assert git(own, "for-each-ref") == refs


def test_git_says_who_asks_and_how_it_is_told(gateway: GatewayProcess, place: Place, tmp_path: Path) -> None:
    publish(place, GREET)
    source = f"git+{place.https}/secret/greet.git"
    refuse(gateway, place, source, "git finds a name and a token in its credential helper")
    (tmp_path / "netrc").mkdir()
    put(tmp_path / "netrc", {".netrc": "machine 127.0.0.1 login anna password s3cret\n"})
    gateway.environ["HOME"] = str(tmp_path / "netrc")
    take(gateway, source)


@pytest.mark.parametrize("address", [by_ssh], indirect=True)
def test_ssh_asks_nobody_and_says_what_helps(gateway: GatewayProcess, place: Place, address: str) -> None:
    """On a terminal it would ask, below the bar that shows how long it lasts."""
    publish(place, GREET)
    known = gateway.environ["GIT_SSH_COMMAND"]
    for ssh, said in (
        ("ssh -F none -o UserKnownHostsFile=/dev/null", "connect to that host with ssh once"),
        (known.replace("/client ", "/nobody "), "Permission denied"),
        (known, "does not appear to be a git repository"),
    ):
        gateway.environ["GIT_SSH_COMMAND"] = ssh
        with Typist(gateway, "hooks", "install", f"{address}/nowhere.git") as typist:
            assert "authenticity" not in typist.sees(said)
            assert typist.leaves() == 1


@pytest.mark.parametrize("source", ["{https}/greet.zip", "git+{https}/greet.git"])
def test_a_host_that_cannot_show_who_it_is_gives_nothing(gateway: GatewayProcess, place: Place, source: str) -> None:
    publish(place, GREET)
    make_zip(place.folder / "greet.zip", GREET)
    del gateway.environ["SSL_CERT_FILE"], gateway.environ["GIT_SSL_CAINFO"]
    refuse(gateway, place, source.format(https=place.https), "certificate")


def test_a_package_comes_from_a_registry_with_what_it_needs(
    gateway: GatewayProcess, place: Place, tmp_path: Path
) -> None:
    needs = make_wheel(tmp_path / "made", "wordlist", {"wordlist/__init__.py": "HELLO = 'hello'\n"})
    offer(place.folder, make_wheel(tmp_path / "made", "greetings", PACKAGE, ["wordlist"], POINTS), needs)
    take(gateway, "package:greetings==1.0")
    locked = lock_of(gateway)["greet"]["packages"]
    assert [line.partition(" --hash=sha256:")[0] for line in locked] == ["greetings==1.0", "wordlist==1.0"]
    assert hashlib.sha256(needs.read_bytes()).hexdigest() in locked[1]


WITH_WORDS = "import wordlist\n\ndef handle(event_type, context):\n    print('it says', wordlist.HELLO)\n"


@pytest.mark.parametrize("offered", ["folder", "package"])
def test_a_hook_runs_with_the_packages_that_were_installed_for_it(
    gateway: GatewayProcess, place: Place, tmp_path: Path, offered: str
) -> None:
    needs = make_wheel(tmp_path / "made", "wordlist", {"wordlist/__init__.py": "HELLO = 'hello'\n"})
    if offered == "folder":
        manifest = f"{GREET['HOOK.yaml']}requires: {{python: [wordlist]}}\n"
        source = str(put(place.folder / "greet", {"HOOK.yaml": manifest, "handler.py": WITH_WORDS}))
        offer(place.folder, needs)
    else:
        source = "package:greetings"
        files = {**PACKAGE, "greetings/greet/handler.py": WITH_WORDS}
        offer(place.folder, make_wheel(tmp_path / "made", "greetings", files, ["wordlist"], POINTS), needs)
    done = gateway.cli("hooks", "install", source, "--yes")
    assert done.returncode == 0, done.stderr
    gateway.script({"text": "good morning"})
    gateway.start()
    gateway.say("hi")
    printed = gateway.home.hook_logs / "greet.log"
    gateway.until(lambda: printed.exists() and "it says hello" in printed.read_text())
    (place_of_words,) = gateway.home.installed_hooks.glob(".packages/*/wordlist/__init__.py")
    planted = place_of_words.parent / "__pycache__" / f"__init__.{sys.implementation.cache_tag}.pyc"
    planted.parent.mkdir()
    planted.write_bytes(b"planted")  # Python would run it in place of the source beside it
    gateway.kill()
    gateway.start()
    assert "its packages are not what was installed" in gateway.call("hooks.info", {"name": "greet"})["reason"]
    mended = gateway.cli("hooks", "install", source, "--yes")
    assert (mended.returncode, "greet is loaded" in mended.stderr) == (0, True), mended.stderr
    frozen = put(tmp_path, {"frozen.json": gateway.cli("hooks", "freeze").stdout}) / "frozen.json"
    (place.folder / "simple").rename(tmp_path / "away")  # what is there needs no source
    assert "all is as it was frozen" in gateway.cli("hooks", "sync", str(frozen), "--yes").stderr


def make_source_package(path: Path, ran: Path) -> Path:
    """One that has to run to be installed."""
    name = path.name.removesuffix(".tar.gz")
    setup = f"open({str(ran)!r}, 'w')\nfrom setuptools import setup\nsetup(name='{name.partition('-')[0]}')\n"
    return make_tar(path, {f"{name}/setup.py": setup, f"{name}/PKG-INFO": "Name: x\nVersion: 1.0\n"})


PACKAGES = {
    "source": "packages of hooks are wheels",
    "needs-source": "packages of hooks are wheels",
    "other-hash": "packages of hooks are wheels",
    "leads-out": "packages of hooks are wheels",
    "no-hook": "offers no hook",
    "link-out": "offers no hook",
}


@pytest.mark.parametrize("how", PACKAGES)
def test_a_hostile_package_is_refused(gateway: GatewayProcess, place: Place, tmp_path: Path, how: str) -> None:
    made = tmp_path / "made"
    made.mkdir()
    match how:
        case "source":
            offer(place.folder, make_source_package(made / "greetings-1.0.tar.gz", place.ran))
        case "needs-source":
            offer(place.folder, make_source_package(made / "wordlist-1.0.tar.gz", place.ran))
            offer(place.folder, make_wheel(made, "greetings", PACKAGE, ["wordlist"], POINTS))
        case "other-hash":
            offer(place.folder, make_wheel(made, "greetings", PACKAGE, points=POINTS), digest="0" * 64)
        case "leads-out":
            offer(place.folder, make_wheel(made, "greetings", {**PACKAGE, "../../../out.py": "x"}, points=POINTS))
        case "no-hook":
            offer(place.folder, make_wheel(made, "greetings", PACKAGE))
        case _:
            offer(
                place.folder, make_wheel(made, "greetings", PACKAGE, points=POINTS.replace("greetings.greet", "/etc"))
            )
    refuse(gateway, place, "package:greetings", PACKAGES[how])


def test_what_a_wheel_would_have_run_does_not_run(gateway: GatewayProcess, place: Place, tmp_path: Path) -> None:
    """Code at import, a `.pth` file that Python runs at its start, programs: they lie there, and nobody starts them."""
    touch = f"open({str(place.ran)!r}, 'w')\n"
    files = {
        **PACKAGE,
        "greetings/__init__.py": touch,
        "greetings.pth": f"import os; {touch}",
        "sitecustomize.py": touch,
        "greetings-1.0.data/scripts/hermes-gateway": f"#!python\n{touch}",
    }
    offer(place.folder, make_wheel(tmp_path / "made", "greetings", files, points=POINTS))
    take(gateway, "package:greetings")
    assert gateway.cli("hooks", "list", "--all").returncode == 0
    assert not place.ran.exists()


def test_which_events_it_hears_is_shown_and_an_update_that_hears_more_is_not_taken(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    greet = put(tmp_path / "greet", GREET)
    put(greet, {"HOOK.yaml": f"{MANIFEST}when: {{platform: [slack, telegram], status: ok}}\n"})
    done = gateway.cli("hooks", "install", str(greet), "--yes")
    assert "only when  platform is slack or telegram; status is ok" in done.stdout
    put(greet, {"HOOK.yaml": f"{MANIFEST}when: {{platform: slack, status: ok}}\n"})
    assert gateway.cli("hooks", "update", "--yes").returncode == 0
    put(greet, {"HOOK.yaml": MANIFEST})
    done = gateway.cli("hooks", "update", "--yes")
    assert (done.returncode, "asks for more: when: any" in done.stdout) == (1, True), done.stdout
    assert "- only when: platform is slack; status is ok" in done.stdout
    file = gateway.home.own_folder / lock_of(gateway)["greet"]["path"] / "HOOK.yaml"
    file.chmod(0o600)
    file.write_text(MANIFEST)  # what it said so far cannot be passed off as less
    done = gateway.cli("hooks", "update", "--yes")
    assert (done.returncode, "asks for more: what it asked for so far is not known" in done.stdout) == (1, True)
