"""The diagrams of the documentation: Mermaid draws each `docs/pictures/NAME.mmd` as `NAME.svg` beside it.

npm fetches Mermaid for the drawing, and the Chromium of the tests runs it; no reader's browser loads it. Each drawing
names the digest of its text, so that a test finds a drawing that is older than its text. It has colours for light and
dark, and a ground of its own.
"""

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.browser.screen import find_chromium, open_chromium
from tests.proof_table import ROOT

FOLDER = ROOT / "docs" / "pictures"
FETCHED = ROOT / "build" / "mermaid"
PACKAGE, SHA256 = "mermaid@12.3.0", "be0684e8d20bfc874df12c0f04927a5c482f57f2200eec54cca52a4583fd4040"
SETTINGS = {
    "startOnLoad": False,
    "deterministicIds": True,
    "look": "classic",
    "layout": "dagre",
    "theme": "base",
    "fontFamily": "sans-serif",
    "htmlLabels": False,
    "flowchart": {"htmlLabels": False, "wrappingWidth": 400, "nodeSpacing": 28, "rankSpacing": 40, "padding": 14},
    "sequence": {
        "mirrorActors": False,
        "wrap": True,
        "width": 130,
        "height": 44,
        "actorMargin": 45,
        "messageMargin": 26,
    },
}
LIGHT = {
    "paper": "#ffffff",
    "ink": "#1c2433",
    "line": "#5b6678",
    "box": "#edf3fe",
    "edge": "#7a9fd6",
    "part": "#f6f8fb",
}
DARK = {"paper": "#15191f", "ink": "#d6dbe3", "line": "#93a0b4", "box": "#1f2c40", "edge": "#56789f", "part": "#1a2029"}
STYLE = """<style>
svg{PROPERTIES}
@media(prefers-color-scheme:dark){svg{OTHERS}}
text{font-family:sans-serif;fill:var(--ink)}
.paper,.background,.labelBkg{fill:var(--paper)}
.cluster .background{fill:none}
.cluster rect{fill:var(--part);stroke:var(--edge);stroke-dasharray:4}
.label text{text-anchor:middle}
.messageText{paint-order:stroke;stroke:var(--paper);stroke-width:6px}
.node :is(rect,path,polygon,circle),rect.actor,.note,.labelBox{fill:var(--box);stroke:var(--edge)}
.note{fill:var(--part)}
.flowchart-link,.messageLine0,.messageLine1,.actor-line,.loopLine{fill:none;stroke:var(--line);stroke-width:1.3}
.edge-pattern-dotted,.messageLine1,.loopLine{stroke-dasharray:4}
.actor-line{opacity:.4}
marker path{fill:var(--line);stroke:none}
</style>"""
DIGEST = re.compile(r"<!-- ([0-9a-f]{64}) -->")
SHORTER = re.compile(r"-?\d+\.\d{2,}")  # numbers, of which one digit behind the point is enough
# What Mermaid writes for scripts and for looks that no diagram has.
NOT_SHOWN = re.compile(
    r"<style>.*?</style>|<(?:linearGradient|filter).*?</(?:linearGradient|filter)>| data-[\w-]+=\"[^\"]*\"",
    re.DOTALL,
)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def fetch_mermaid() -> Path:
    """Return Mermaid's one script, from the pinned package of npm."""
    script = FETCHED / "package" / "dist" / "mermaid.min.js"
    if not script.exists():
        FETCHED.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(["npm", "pack", PACKAGE], cwd=FETCHED, check=True, capture_output=True, text=True)
        archive = FETCHED / packed.stdout.split()[-1]
        if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
            raise SystemExit(f"{archive}: not the package {PACKAGE} that this was written with")
        subprocess.run(["tar", "-xzf", archive, script.relative_to(FETCHED)], cwd=FETCHED, check=True)
    return script


def draw(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Draw each of these texts; return its name and its SVG."""
    program = find_chromium()
    if program is None:
        raise SystemExit("Mermaid draws in a real browser: apt install chromium")
    with open_chromium(program) as browser:
        page = browser.new_page()
        page.add_script_tag(path=fetch_mermaid())
        page.evaluate("settings => mermaid.initialize(settings)", SETTINGS)
        for name, text in texts.items():
            drawn = page.evaluate("async text => (await mermaid.render('diagram', text)).svg", text)
            yield name, as_file(text, drawn)


def as_file(text: str, drawn: str) -> str:
    """Give a drawing of Mermaid its ground, our two looks and the digest of its text, without what is not shown."""
    drawn = SHORTER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), NOT_SHOWN.sub("", drawn))
    used = set(re.findall(r"url\(#([^)]+)\)", drawn))
    drawn = re.sub(r'<(marker|symbol) id="([^"]+)".*?</\1>', lambda one: one[0] if one[2] in used else "", drawn)
    box = re.findall(r'viewBox="([^"]+)"', drawn)[0]
    x, y, width, height = box.split()
    light, dark = ("".join(f"--{name}:{colour};" for name, colour in look.items()) for look in (LIGHT, DARK))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{width}" height="{height}">',
            f"<!-- {digest_of(text)} -->",
            STYLE.replace("PROPERTIES", light).replace("OTHERS", dark),
            f'<rect class="paper" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>',
            drawn.partition(">")[2],
            "",
        ]
    )


def find_old(folder: Path, kind: str = ".mmd") -> dict[str, str]:
    """Return the texts of this kind whose drawing is missing, or was made from another text."""
    texts = {path.stem: path.read_text("utf-8") for path in sorted(folder.glob(f"*{kind}"))}
    return {name: text for name, text in texts.items() if read_digest(folder / f"{name}.svg") != digest_of(text)}


def read_digest(path: Path) -> str:
    found = DIGEST.search(path.read_text("utf-8")) if path.exists() else None
    return found[1] if found else ""


def main() -> None:
    for name, drawn in draw(find_old(FOLDER)):
        (FOLDER / f"{name}.svg").write_text(drawn, "utf-8")


if __name__ == "__main__":
    main()
