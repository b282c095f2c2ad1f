"""A folder of a git repository at one commit: its files as git packs them, without its programs and settings.

git makes a tar, which is extracted like every archive: links, the contents of submodules and paths that lead elsewhere
are not part of a hook.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from gateway.errors import HookError
from gateway.installer.archive import extract_stream
from gateway.logs.text import to_one_line

SCHEMES = ("https", "ssh", "file", "http")
PATIENCE = 300.0  # seconds for one call of git
MAX_FETCHED = 512 << 20  # bytes of a file that git writes: a server may send without end
TOO_LARGE = "File too large"  # git's words
NO_FOLDER = "not a valid object name"  # git's words
NO_FILE = "did not match any files"  # git's words
MAX_ENTRIES = 50_000  # of a tree: git holds all of it in memory before it sends the first file
CHUNK = 1 << 16
BLOCK = 512  # bytes: the shell's unit
WANTED = "refs/hermes/wanted"
PUBLIC_REFS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
# No program or setting of a repository, or of the whole machine, is started.
QUIET = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never"),
    *("-c", "http.followRedirects=initial"),
)
PRIVATE = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
# ssh would ask on the terminal, below a moving bar. With a program for that, it asks in a window.
NO_QUESTIONS = {"SSH_ASKPASS": "false", "SSH_ASKPASS_REQUIRE": "force"}
# git sets these for its own hooks, which may call us: our repository is another one.
OF_OTHER_REPOSITORY = frozenset(
    {
        *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_SHALLOW_FILE"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"),
    }
)
REDIRECTED = re.compile(r"^warning: redirecting to (\S+)$", re.MULTILINE)  # git's words, unless it is quiet
NO_ACCESS = "fatal: Could not read from remote repository."  # git's words, below the reason of ssh or the host
CREDENTIALS = "git finds a name and a token in its credential helper or in ~/.netrc; or give a key for git+ssh://"
REMEDIES = {  # by the words of git or ssh
    "could not read Username": CREDENTIALS,
    "could not read Password": CREDENTIALS,
    "Authentication failed": CREDENTIALS,
    "Host key verification failed": "git cannot ask here: connect to that host with ssh once, and look at its key",
    "dubious ownership": "it belongs to another user: clone it, or name it as safe.directory in your settings of git",
    "Permission denied (": "ssh needs a key that this host knows: without a passphrase, or in its agent (ssh-add)",
}


def fetch_commit(address: str, ref: str, work: Path, environ: Mapping[str, str], limit: int = MAX_FETCHED) -> str:
    """Fetch the commit of a branch, a tag, or a commit's name, by default of the main branch; return its full name.

    Raises:
        HookError: git is missing, cannot reach the repository, or does not find the commit in it; or it is too large.
    """
    if shutil.which("git", path=environ.get("PATH")) is None:
        raise HookError("git is not there\ninstall it, or give a folder or an archive")
    if address.startswith("-") or ref.startswith("-"):
        raise HookError(f"{to_one_line(address)}@{to_one_line(ref)} is not a repository")
    _run(["init", "-q", "--bare", "--template=", str(work)], work, environ)
    try:
        _fetch(address, ["--depth=1", "--no-tags"], [f"+{ref or 'HEAD'}:{WANTED}"], work, environ, limit)
        return _find_commit(WANTED, work, environ)
    except HookError:
        if not ref:
            raise
    # A server may refuse a commit by its name: then all public branches and tags are searched.
    _fetch(address, [], PUBLIC_REFS, work, environ, limit)
    try:
        return _find_commit(ref, work, environ)
    except HookError:
        raise HookError(f"{to_one_line(address)} has no branch, tag or commit {to_one_line(ref)}") from None


def _fetch(
    address: str, options: Sequence[str], refs: Sequence[str], work: Path, environ: Mapping[str, str], limit: int
) -> None:
    """Fetch refs of a repository. Raises HookError also for a redirect to another host, which the user did not name.

    A redirect on the same host is followed, on the first request only: hosts use it for a repository that was renamed,
    or whose address ends with .git there.
    """
    parts = urlsplit(address)
    schemes = [scheme for scheme in SCHEMES if scheme != "http" or parts.scheme == "http"]
    around = {**environ, "GIT_ALLOW_PROTOCOL": ":".join(schemes)}
    said = _run(["fetch", "--no-progress", *options, address, *refs], work, around, limit).stderr
    for led in REDIRECTED.findall(said.decode("utf-8", "replace")):
        there = urlsplit(led)
        if (there.scheme, there.hostname, there.port) != (parts.scheme, parts.hostname, parts.port):
            where = to_one_line(led.rstrip("/"))
            raise HookError(f"{to_one_line(address)} leads to another host\nif that is meant, write git+{where}")


def is_public_commit(address: str, commit: str, work: Path, environ: Mapping[str, str]) -> bool:
    """Return True if a branch or a tag leads to the commit.

    By its name a host also serves commits of other people's copies of the repository.

    Raises:
        HookError: the repository cannot be searched.
    """
    _run(["init", "-q", "--bare", "--template=", str(work)], work, environ)
    _fetch(address, ["--filter=tree:0"], PUBLIC_REFS, work, environ, MAX_FETCHED)
    try:
        return bool(_run(["for-each-ref", "--count=1", f"--contains={commit}"], work, environ).stdout)
    except HookError:
        return False  # the fetch did not bring it


def list_ignored_files(folder: Path, environ: Mapping[str, str]) -> frozenset[str]:
    """List the files of a folder that git ignores, by their paths from there; empty without git."""
    words = ["git", *QUIET, "ls-files", "-z", "--others", "--ignored", "--exclude-standard"]
    try:
        done = subprocess.run(words, cwd=folder, env={**environ, **PRIVATE}, capture_output=True, check=False)
    except FileNotFoundError:
        return frozenset()
    return frozenset(map(os.fsdecode, filter(None, done.stdout.split(b"\0"))))


def _find_commit(ref: str, work: Path, environ: Mapping[str, str]) -> str:
    return _run(["rev-parse", "--verify", "-q", f"{ref}^{{commit}}"], work, environ).stdout.decode().strip()


def extract_commit(
    work: Path, commit: str, subfolder: str, into: Path, environ: Mapping[str, str], names: str = ""
) -> None:
    """Extract the files of a folder of the commit; `names`: only files whose names begin so.

    Raises:
        HookError: it has no such folder or file, or has content that no hook needs.
    """
    tree = f"{commit}:{subfolder}" if subfolder else commit
    _check_size(tree, work, environ)
    words = ["archive", "--format=tar", tree, *([f":(glob){escape(names)}*"] if names else [])]
    with _start_reader(words, work, environ) as git:
        assert git.stdout
        assert git.stderr
        try:
            extract_stream(git.stdout, into)
        except HookError:
            git.kill()
            said = git.stderr.read(4000).decode("utf-8", "replace").strip()
            if NO_FOLDER in said:
                raise HookError(f"the commit {commit[:12]} has no folder {to_one_line(subfolder)}") from None
            if NO_FILE in said:
                raise HookError(f"the commit {commit[:12]} has no file {to_one_line(names)} there") from None
            if said:
                raise HookError(f"{to_one_line(subfolder or commit)}: {to_one_line(said, 300)}") from None
            raise
        git.stdout.read()
    if git.returncode:
        raise HookError(f"git could not give the files of {to_one_line(subfolder or commit)}")


def _check_size(tree: str, work: Path, environ: Mapping[str, str]) -> None:
    """Raise HookError for a tree with too many entries; a few folders that contain each other can have no end."""
    left = MAX_ENTRIES
    with _start_reader(["ls-tree", "-r", "-z", "--name-only", tree], work, environ) as git:
        assert git.stdout
        while data := git.stdout.read(CHUNK):
            left -= data.count(b"\0")
            if left < 0:
                git.kill()
                raise HookError(f"{to_one_line(tree)} holds more than {MAX_ENTRIES} files")


def _start_reader(words: Sequence[str], work: Path, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start git to read the local repository."""
    # The commit chooses the filters of its files, and this user's filters may know secrets.
    around = {"PATH": environ.get("PATH", os.defpath), "HOME": str(work), "GIT_DIR": str(work), **PRIVATE}
    around |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}
    return subprocess.Popen(
        ["git", *QUIET, *words], cwd=work, env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _run(
    words: Sequence[str], work: Path, environ: Mapping[str, str], limit: int = MAX_FETCHED
) -> subprocess.CompletedProcess[bytes]:
    # Programs that git starts are limited too, and report that a file became too large.
    bounded = ("sh", "-c", f"trap '' XFSZ; ulimit -f {limit // BLOCK}; exec git \"$@\"", "git")
    around = {name: value for name, value in environ.items() if name not in OF_OTHER_REPOSITORY}
    try:
        done = subprocess.run(
            [*bounded, *QUIET, *words],
            cwd=work.parent,
            env={**NO_QUESTIONS, **around, **PRIVATE, "GIT_DIR": str(work)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HookError(f"git did not answer within {PATIENCE:.0f} s") from None
    if done.returncode:
        _raise_failure(words[0], done.stderr.decode("utf-8", "replace"), limit)
    return done


def _raise_failure(verb: str, printed: str, limit: int) -> NoReturn:
    """Raise HookError with git's words, and the remedy."""
    if TOO_LARGE in printed:
        raise HookError(f"the repository is larger than {limit >> 20} MB")
    lines = printed.strip().splitlines() or ["failed"]
    said = lines[-1]
    if NO_ACCESS in lines[1:]:
        before = lines[: lines.index(NO_ACCESS)]
        said = next((line for line in before if line.startswith("fatal: ")), before[-1])
    remedy = next((f"\n{helps}" for words, helps in REMEDIES.items() if words in said), "")
    raise HookError(f"git {verb}: {to_one_line(said, 300)}{remedy}")
