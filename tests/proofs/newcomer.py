"""Somebody new, with the README alone: an answer, a hook, BOOT.md.

A fresh clone, a fresh home, nothing installed: what README.md shows is done, one command after the other, as it stands
there, and has to say what the page says. Nothing else is known. *seconds*: how long the command took, with all that it
installs at first; *since*: how long after the clone was begun. How long somebody reads and types is not in it. The
short run takes what is to be installed from this machine's caches.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs_blocks import BIN, Shell, commands, is_like
from tests.proof_table import Row, Trial

COLUMNS = ("what", "seconds", "since")
LONGEST = 56
WIDEST = LONGEST
FIVE_MINUTES = 300.0
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What somebody new has to come by on that page, and the word by which its command is known.
LANDMARKS = {
    "a first answer": "chat -m",
    "a hook": "HOOK.yaml",
    "BOOT.md": "BOOT.md",
    "how it is": "status",
    "the end": "stop",
}
# What a machine says about the way to its registries; nothing else of ours is there.
OF_THE_MACHINE = ("PIP_", "UV_", "SSL_", "REQUESTS_", "CURL_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


class Step(NamedTuple):
    """A command of the page, and what it is shown to say."""

    command: str
    shown: str

    @property
    def name(self) -> str:
        name = " ".join(self.command.replace("\\\n", " ").split()).replace("|", "¦")
        return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."


def prove(trial: Trial) -> Iterator[Row]:
    clone, person = trial.folder / "hermes-gateway", trial.folder / "person"
    person.mkdir()
    begun = time.monotonic()
    subprocess.run(["git", "clone", "-q", trial.tree.as_uri(), clone], check=True)
    yield Row(("git clone", *seconds(begun, begun)))
    steps = [*read_steps(clone / "README.md")]
    shell = Shell(person, clone, FIVE_MINUTES, NO_COLOR="1", **surroundings(trial.is_short))
    try:
        for step in steps:
            trial.tell(step.name)
            at = time.monotonic()
            said, code = shell.run(step.command, step.shown)
            yield Row((step.name, *seconds(at, begun)), tuple(find_faults(step, said, code)))
    finally:
        shell.close()
    yield Row(("all of it", *seconds(begun, begun)), tuple(find_missing(steps, time.monotonic() - begun)))


def seconds(at: float, begun: float) -> tuple[str, str]:
    now = time.monotonic()
    return f"{now - at:.1f}", f"{now - begun:.1f}"


def read_steps(readme: Path) -> Iterator[Step]:
    for block in BLOCK.findall(readme.read_text("utf-8")):
        yield from (Step(command, shown) for command, shown in commands(block))


def surroundings(is_short: bool) -> dict[str, str]:
    """Python and git are on the PATH, and nothing that this checkout has installed."""
    ours = {str(BIN), str(BIN.resolve())}
    path = [f"{sys.base_prefix}/bin", *(one for one in os.environ["PATH"].split(":") if one not in ours)]
    kept = {name: value for name, value in os.environ.items() if name.upper().startswith(OF_THE_MACHINE)}
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if is_short:
        kept = {"UV_CACHE_DIR": str(caches / "uv"), "PIP_CACHE_DIR": str(caches / "pip"), **kept}
    else:
        kept = {name: value for name, value in kept.items() if not name.endswith("_CACHE_DIR")}
    return {"PATH": ":".join(path), **kept}


def find_faults(step: Step, said: str, code: int) -> Iterator[str]:
    if step.shown.strip() and not is_like(step.shown, said):
        yield f"`{step.name}` is shown to say other than it says: {' '.join(said.split())[:300]}"
    elif not step.shown.strip() and code:
        yield f"`{step.name}` ends with {code}: {' '.join(said.split())[:300]}"


def find_missing(steps: list[Step], took: float) -> Iterator[str]:
    for what, word in LANDMARKS.items():
        if not any(word in step.command for step in steps):
            yield f"README.md does not lead to {what}"
    if took > FIVE_MINUTES:
        yield f"it took {took:.0f} s, and five minutes were promised"
