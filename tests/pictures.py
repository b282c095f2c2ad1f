"""`./x pictures`: takes the pictures of the documentation anew, from a gateway that really runs: into `docs/pictures`.

The terminal is drawn (SVG) from what the program writes there; the page in a browser is taken by the Chromium that the
tests use.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from PIL import Image
from playwright.sync_api import FloatRect

from gateway.testing import GatewayProcess
from tests.browser.screen import find_chromium, log_in, open_chromium, screens
from tests.docs_blocks import Shell
from tests.proof_table import ROOT
from tests.terminal_picture import as_svg

FOLDER = ROOT / "docs" / "pictures"
SIZE = {"width": 1200, "height": 760}
SHOWN: FloatRect = {"x": 0, "y": 0, "width": 1200, "height": 520}  # what is below is empty
COLOURS = 64  # of a picture of the page: it has few
QUESTION = './x chat -m "what is 12 * (3 + 4)"'
PLACED = ("cat no-sums/handler.py", "mkdir -p ~/.hermes/hooks && cp -r no-sums ~/.hermes/hooks  # it is live")
TALK = ("what is 12 * (3 + 4)", "what time is it", "/status", "what is 365 / 7")
SAMPLES = ("activity-log", "prompt-guardrail", "tool-approval", "long-task-alert")


def as_written(page: Path, name: str) -> str:
    """The YAML or Python block of a page that holds this."""
    found: list[str] = re.findall(r"```(?:yaml|python)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    return next(block for block in found if name in block)


def take_terminal(place: Path) -> str:
    """What README.md begins with: an answer, a hook, and what it changes."""
    readme, waiting = ROOT / "README.md", place / "desk" / "no-sums"
    shell = Shell(place, FORCE_COLOR="1", COLUMNS="80")
    try:
        waiting.mkdir()
        (waiting / "HOOK.yaml").write_text(as_written(readme, "intercepts:"))
        (waiting / "handler.py").write_text(as_written(readme, "Deny"))
        shell.run("./x run &", "stop")
        said = [("./x run &", until_box_ends(shell.read_behind()))]
        said += [(command, shell.run(command, "")[0]) for command in (QUESTION, *PLACED)]
        shell.run("sleep 1", "")
        return as_svg([*said, (QUESTION, shell.run(QUESTION, "")[0])])
    finally:
        shell.close()


def until_box_ends(said: str) -> str:
    """The banner, without the lines of the log around it."""
    return "\n".join(line for line in said.splitlines() if line[:1] in {"╭", "│", "╰"})


def prepare(gateway: GatewayProcess) -> None:
    for name in SAMPLES:
        gateway.add_hook(name, ROOT / "sample_hooks" / name)
    gateway.start()
    for message in TALK:
        gateway.cli("chat", "-m", message)


def take_rooms(place: Path, folder: Path) -> None:
    """The page: what the owner sees first, and the hooks."""
    program = find_chromium()
    if program is None:
        raise SystemExit("the page is taken in a real browser: apt install chromium")
    with GatewayProcess(place) as gateway, open_chromium(program) as browser:
        prepare(gateway)
        url, login = log_in(browser, gateway)
        for room, shows in (("overview", "Events"), ("hooks", "prompt-guardrail")):
            with screens(browser, url, login, viewport=SIZE) as screen:
                screen.enter(room, shows)
                path = folder / f"{room}.png"
                screen.page.screenshot(path=path, clip=SHOWN)
                Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./x pictures", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="where they go (default: docs/pictures)")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pictures-") as place:
        (folder / "terminal.svg").write_text(take_terminal(Path(place)), "utf-8")
    with tempfile.TemporaryDirectory(prefix="pictures-") as place:
        take_rooms(Path(place) / "home", folder)
    for path in sorted(folder.iterdir()):
        print(f"{path.name:<14} {path.stat().st_size / 1024:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
