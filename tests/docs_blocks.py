"""The trial of the documentation's code blocks.

Python runs, shell commands run and have to print the shown output, YAML is read by its real reader, which its first
line names: `# HOOK.yaml` or `# config.yaml`. A block that cannot be tried is skipped, visibly in the source and with
its reason, by a line before it: `<!-- skip: next "reason" -->`.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import yaml
from sybil import Document, Example
from sybil.parsers.markdown import CodeBlockParser, SkipParser
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import load_configuration
from gateway.errors import GatewayError
from gateway.hooks.manifests.manifest import read_manifest
from gateway.testing.patience import Patience, wait_until
from tests.http_server import find_free_ports

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
PATIENCE = 60.0
PORTS = ("127.0.0.1:8730", "127.0.0.1:4222")  # as the pages have the gateway's and NATS's; here each page has its own
NODE = tuple(str(Path(found).parent) for found in (shutil.which("node"),) if found)
RUN = re.compile(r"\brun &\s*$")  # a gateway, which says when it is ready
WAITS = re.compile(r"sleep \d; ")
END = re.compile(r"\x1e(\d+)\n\Z")
# A command: with its here-document, or with the lines that a backslash adds.
COMMAND = re.compile(r"^\$ (.*<<'(\w+)'\n(?:.*\n)*?\2|(?:.*\\\n)*.*)(?:\n|\Z)", re.MULTILINE)
# Blocks that are looked at, and not tried.
PROGRESS = re.compile(r"^(?:copying|checking|reading|building|fetching) .+ \.\.\.\n", re.MULTILINE)
PICTURES = {"text", "mermaid"}


class Shell:
    """One bash for one page: a home of its own, the program on its PATH, and `./x`, the samples and the docs where it
    stands.

    A command that ends in `&` goes on until the page is done; the next one waits for what it is shown to say, which may
    stand anywhere in what it says, and until a gateway says that it is ready.
    """

    def __init__(self, place: Path, folder: Path | None = None, patience: float = PATIENCE, **variables: str) -> None:
        """In the folder of somebody's own, or else where the page finds what it names."""
        self._place = place
        self._patience = patience
        self._variables = variables
        self._said = self._behind = place / "said"
        desk = folder or make_desk(place)
        found = find_free_ports(len(PORTS))
        self._ports = {port: f"127.0.0.1:{free}" for port, free in zip(PORTS, found, strict=True)}
        self._inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._inbox.bind(str(place / "notify"))
        with self._said.open("wb") as said:
            self._bash = subprocess.Popen(
                ["bash", "--norc", "--noprofile"],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                cwd=desk,
                env=self._environment(),
                start_new_session=True,
            )

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": ":".join((str(BIN), *NODE, "/usr/local/bin", "/usr/bin", "/bin")),
            "HOME": str(self._place),
            "HERMES_HOME": str(self._place / ".hermes"),
            "GATEWAY_WEB_LISTEN": self._ports[PORTS[0]],
            "NOTIFY_SOCKET": str(self._place / "notify"),
            "LANG": "C.UTF-8",
            "NPM_CONFIG_USERCONFIG": str(Path.home() / ".npmrc"),  # how this machine reaches the packages of Node
            "NODE_EXTRA_CA_CERTS": get_process_environment().get("NODE_EXTRA_CA_CERTS", ""),
            **(self._variables or {"NO_COLOR": "1"}),
        }

    def run(self, command: str, shown: str) -> tuple[str, int]:
        """Run a command; returns its output, with the page's home written as `~`, and its exit code."""
        assert self._bash.stdin
        is_behind = command.rstrip().endswith("&")
        before = len(self._text())
        for port, own in self._ports.items():
            command = command.replace(port, own)
        if is_behind:
            self._behind = self._place / f"behind-{len(list(self._place.glob('behind-*')))}"
        aside = f">{self._behind} 2>&1" if is_behind else ""
        self._bash.stdin.write(f"{{ {command}\n}} </dev/null {aside}\nprintf '\\036%s\\n' $?\n".encode())
        self._bash.stdin.flush()
        wait_until(lambda: END.search(self._text(), before), self._patience, f"the end of\n$ {command}")
        if is_behind:
            return self._until_ready(command, shown), 0
        ended = END.search(self._text(), before)
        return self._at_home(END.sub("", self._text()[before:])), int(ended[1]) if ended else -1

    def _until_ready(self, command: str, shown: str) -> str:
        self._inbox.settimeout(self._patience)
        while RUN.search(command) and b"READY=1" not in self._inbox.recv(4096).split(b"\n"):
            pass
        wanted = f"...{shown.strip()}..."
        with contextlib.suppress(GatewayError):  # what it says instead is shown
            wait_until(lambda: is_like(wanted, self.read_behind()))
        said = self.read_behind()
        return shown if is_like(wanted, said) else said

    def read_behind(self) -> str:
        """Return the present output of the last command in the background."""
        return self._at_home(self._behind.read_text())

    def _at_home(self, text: str) -> str:
        text = text.replace(str(self._place), "~")
        for port, own in self._ports.items():
            text = text.replace(own, port)
        return text

    def _text(self) -> str:
        return self._said.read_text("utf-8", "replace")

    def close(self) -> None:
        """End the started processes, first by a signal, then by force."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGTERM)
            with contextlib.suppress(GatewayError):
                wait_until(lambda: not is_alive(self._bash), 10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.communicate()
        self._inbox.close()


def read_hook(page: Path, hook: str) -> dict[str, str]:
    """Read the files that a page writes into the folder of this hook."""
    written = re.compile(rf"^\$ cat > \S*/{hook}/(\S+) <<'END'\n(.*?)^END$", re.DOTALL | re.MULTILINE)
    return dict(written.findall(page.read_text("utf-8")))


def make_desk(place: Path) -> Path:
    """Make the folder in which pages are tried: the listed parts of a clone."""
    desk = place / "desk"
    desk.mkdir()
    (desk / "x").write_text(f'#!/bin/sh\nHERMES_GATEWAY_CALLED=$0 exec {ROOT}/x "$@"\n')
    (desk / "x").chmod(0o755)
    for name in ("sample_hooks", "docs"):
        (desk / name).symlink_to(ROOT / name)
    return desk


def is_alive(leader: subprocess.Popen[bytes]) -> bool:
    """Return True if a process of the group lives."""
    leader.poll()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader.pid, 0)
        return True
    return False


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command of a block, behind its `$ `, with the lines that are said to follow."""
    found = list(COMMAND.finditer(block))
    before = block[: found[0].start()] if found else block
    assert not before.strip(), "a console block begins with `$ ` and a command"
    for command, following in zip_longest(found, found[1:]):
        yield command[1], block[command.end() : following.start() if following else None]


def remove_progress(said: str) -> str:
    """Remove the lines about progress, which appear on a slow machine."""
    return PROGRESS.sub("", said)


def is_like(shown: str, said: str) -> bool:
    """Return True if the output is as shown; `...` matches anything, and ends of lines do not count."""
    wanted, found = (re.sub(r"[ \t]+$", "", text.strip(), flags=re.MULTILINE) for text in (shown, said))
    return bool(re.fullmatch(".*".join(map(re.escape, wanted.split("..."))), found, re.DOTALL))


class Page:
    """One document and where it is tried; `try_all` raises at the first block that is not as it should be."""

    def __init__(self, path: Path, place: Path) -> None:
        self._place = place
        self._shell: Shell | None = None
        parsers = {"python": self._python, "console": self._console, "yaml": self._yaml, "json": self._json}
        tried = [CodeBlockParser(language, evaluate) for language, evaluate in parsers.items()]
        self._document = Document.parse(str(path), *tried, SkipParser())
        self._known = {*parsers, *PICTURES}

    def unknown_blocks(self) -> list[str]:
        """List the blocks in an untested language."""
        lexer = RawFencedCodeBlockLexer(re.compile(r"(?P<language>[^\n]*)\n"))
        found = [(region.lexemes["language"].strip(), region.start) for region in lexer(self._document)]
        where = self._document.line_column
        return [f"{where(start)}: `{language}`" for language, start in found if language not in self._known]

    def unexplained_skips(self) -> list[str]:
        return re.findall(r"<!-- skip: \w+ *-->", self._document.text)

    def try_all(self) -> None:
        try:
            for example in self._document.examples():
                with contextlib.suppress(unittest.SkipTest):
                    self._try(example)
        finally:
            if self._shell:
                self._shell.close()

    def _try(self, example: Example) -> None:
        try:
            example.evaluate()
        except (Exception, SystemExit) as error:
            error.add_note(f"{example.path}:{example.line}")
            raise

    def _python(self, example: Example) -> None:
        padding = "\n" * (example.line + example.parsed.line_offset)
        exec(compile(padding + example.parsed, example.path, "exec", dont_inherit=True), example.namespace)

    def _console(self, example: Example) -> None:
        self._shell = self._shell or Shell(self._place)
        for command, shown in commands(example.parsed):
            said, code = self._shell.run(command, shown)
            patience = Patience(PATIENCE)
            while WAITS.match(command) and not is_like(shown or said, said) and not patience.is_over():
                said, code = self._shell.run(command, shown)  # on a busy machine it takes longer
            assert shown.strip() or code == 0, f"$ {command}\nends with {code} and says:\n{said}"
            said = remove_progress(said)
            assert not shown.strip() or is_like(shown, said), f"$ {command}\nsays, with exit code {code}:\n{said}"

    def _json(self, example: Example) -> None:
        json.loads(example.parsed)

    def _yaml(self, example: Example) -> None:
        name = example.parsed.partition("\n")[0].removeprefix("#").strip()
        assert name, "the first line of a YAML block is a comment that names its file"
        place = self._place / f"line-{example.line}"
        match name.rpartition("/")[2]:
            case "HOOK.yaml":
                read_as_manifest(place, example.parsed)
            case "config.yaml":
                read_as_config(place, example.parsed)
            case _:
                yaml.safe_load(example.parsed)


def read_as_manifest(place: Path, text: str) -> None:
    place.mkdir()
    (place / "HOOK.yaml").write_text(text)
    reading = read_manifest(place)
    assert not reading.findings, "\n".join(map(str, reading.findings))


def read_as_config(place: Path, text: str) -> None:
    home = Home(place)
    home.own_folder.mkdir(parents=True, mode=0o700)
    home.config.touch(0o600)
    home.config.write_text(text)
    keys = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "a-key-that-is-in-env")
    configuration = load_configuration(load_settings_schema(), home, {"HOME": str(place), **keys})
    wrong = [finding for finding in configuration.warnings if "has no key" not in finding.what]  # nor has a page
    assert not wrong, wrong
