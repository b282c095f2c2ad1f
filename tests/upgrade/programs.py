"""Programs to upgrade to and from: wheels of this tree with another version or a fault, each in an environment.

What the gateway needs lies in the environment of the tests, which is named in a file; uv is told to leave it alone.
"""

import base64
import hashlib
import marshal
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from importlib.metadata import distribution
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "hooks_builtin", "sample_hooks")
PYTHON_FOLDER = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
# In each environment: `hermes-gateway upgrade` is killed before something that the interpreter tells of, which
# UPGRADE_CUT names: the event, a part of what is said of it, of how many of them it is the last, and by which signal.
CUT = """
import os, signal, sys
event, part, left, *by = (os.environ.get("UPGRADE_CUT") or "- - 0").split()
left = int(left)
def look(name, told):
    global left
    if name == event and part in repr(told[:2]):
        left -= 1
        if left == 0:
            signal.raise_signal(signal.Signals[by[0] if by else "SIGKILL"])
if "upgrade" in sys.orig_argv:
    sys.addaudithook(look)
"""


def find_uv() -> str:
    own = ROOT / ".uv" / "bin" / "uv"
    return str(own) if own.exists() else shutil.which("uv") or "uv"


def make_wheel(folder: Path, version: str, changes: Mapping[str, str] | None = None) -> Path:
    """This tree as this version. `changes` are files with the text that is put behind what is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel, about, record = (
        folder / f"hermes_gateway-{version}-py3-none-any.whl",
        f"hermes_gateway-{version}.dist-info",
        "",
    )
    changes = {"gateway/__init__.py": f'\n__version__ = "{version}"\n', **(changes or {})}
    metadata = (distribution("hermes-gateway").read_text("METADATA") or "").splitlines()
    texts = {
        f"{about}/METADATA": "\n".join(
            f"Version: {version}" if one.startswith("Version:") else one for one in metadata
        ),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\nhermes-gateway = gateway.cli:main\n",
    }
    with zipfile.ZipFile(wheel, "w") as packed:
        for path in sorted(one for name in PACKAGES for one in (ROOT / name).rglob("*") if one.is_file()):
            name = path.relative_to(ROOT).as_posix()
            if "__pycache__" not in name:
                data = path.read_bytes() + changes.get(name, "").encode()
                files = {name: data} | (compile_once(path, name, data) if path.suffix == ".py" else {})
                for place, content in files.items():
                    packed.writestr(place, content)
                    record += make_record(place, content)
        for name in [one for one in texts if one.startswith(about)]:
            packed.writestr(name, texts[name])
            record += make_record(name, texts[name].encode())
        packed.writestr(f"{about}/RECORD", f"{record}{about}/RECORD,,\n")
    return wheel


def compile_once(path: Path, name: str, data: bytes) -> dict[str, bytes]:
    """The byte code, for else each environment compiles all of it, at its first start and at its upgrade."""
    loader = SourceFileLoader(path.stem, str(path))
    code = loader.get_code(path.stem) if data == path.read_bytes() else compile(data, name, "exec", dont_inherit=True)
    flags = 0b11  # by the content of the source, since each place has other times
    header = MAGIC_NUMBER + flags.to_bytes(4, "little") + source_hash(data)
    return {cache_from_source(name): header + marshal.dumps(code)}


def make_record(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


class Program:
    """An environment with a version of the gateway, as a person has it who installed it there."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.prefix, self._uv = folder / "env", find_uv()
        config = folder / "uv.toml"
        config.write_text("no-index = true\n[pip]\nno-deps = true\n")
        self.environ = {
            "PATH": f"{Path(self._uv).parent}{os.pathsep}{os.environ['PATH']}",
            "UV_CONFIG_FILE": str(config),
        }
        for name in ("UV_CACHE_DIR", "TMPDIR"):
            if name in os.environ:
                self.environ[name] = os.environ[name]
        self._call_uv("venv", "-q", "--python", sys.executable, str(self.prefix))
        (self.prefix / PYTHON_FOLDER / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        (self.prefix / PYTHON_FOLDER / "cut.pth").write_text("import upgrade_cut\n")
        (self.prefix / PYTHON_FOLDER / "upgrade_cut.py").write_text(CUT)
        self._call_uv("pip", "install", "-q", "--python", str(self.prefix / "bin" / "python"), str(wheel))

    @property
    def path(self) -> Path:
        return self.prefix / "bin" / "hermes-gateway"

    def _call_uv(self, *words: str) -> None:
        subprocess.run([self._uv, *words], env={**os.environ, **self.environ}, check=True, capture_output=True)
