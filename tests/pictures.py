"""`./x pictures`: takes the pictures of the documentation from a gateway that really runs, into `docs/pictures`.

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
HOOK = "ask-first"
PLACED = (f"cat {HOOK}/handler.py", f"mkdir -p ~/.hermes/hooks && cp -r {HOOK} ~/.hermes/hooks  # it is live")
REFUSAL = "./x chat -m no"
TALK = ("what is 12 * (3 + 4)", "what time is it", "/status", "what is 365 / 7")
SAMPLES = ("activity-log", "prompt-guardrail", "tool-approval", "long-task-alert")


def read_hook(page: Path) -> dict[str, str]:
    """The files that a page writes into the folder of its hook."""
    written = re.compile(rf"^\$ cat > \S*/{HOOK}/(\S+) <<'END'\n(.*?)^END$", re.DOTALL | re.MULTILINE)
    return dict(written.findall(page.read_text("utf-8")))


def take_terminal(place: Path) -> str:
    """Take the picture at the top of README.md: an answer, a hook, and its change."""
    waiting = place / "desk" / HOOK
    shell = Shell(place, FORCE_COLOR="1", COLUMNS="80")
    try:
        waiting.mkdir()
        for name, text in read_hook(ROOT / "README.md").items():
            (waiting / name).write_text(text)
        shell.run("./x run &", "stop")
        said = [("./x run &", until_box_ends(shell.read_behind()))]
        said += [(command, shell.run(command, "")[0]) for command in (QUESTION, *PLACED)]
        shell.run("sleep 1", "")
        return as_svg([*said, *((command, shell.run(command, "")[0]) for command in (QUESTION, REFUSAL))])
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
