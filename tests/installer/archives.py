"""Archives and packages as strangers make them, good and bad."""

import base64
import hashlib
import io
import shutil
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

MANIFEST = "name: greet\ndescription: Says hello\nversion: 1.0.0\nevents: [agent:end]\nuses: [store]\n"
HANDLER = "def handle(event_type, context):\n    print('hello', event_type)\n"
GREET = {"HOOK.yaml": MANIFEST, "handler.py": HANDLER}


def put(folder: Path, files: Mapping[str, str]) -> Path:
    """A folder with these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def make_tar(path: Path, files: Mapping[str, str], *odd: tarfile.TarInfo) -> Path:
    """`odd`: members that are not plain files."""
    mode = "w:gz" if path.name.endswith("gz") else "w:xz" if path.name.endswith("xz") else "w"
    with tarfile.open(path, mode) as packed:  # type: ignore[call-overload]
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            packed.addfile(member, io.BytesIO(text.encode()))
        for member in odd:
            packed.addfile(member)
    return path


def make_zip(path: Path, files: Mapping[str, str | bytes], modes: Mapping[str, int] | None = None) -> Path:
    """`modes`: what `stat` would say of some."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (modes or {}).get(name, 0o100644) << 16
            packed.writestr(member, data)
    return path


def make_wheel(
    folder: Path,
    name: str,
    files: Mapping[str, str],
    requires: Sequence[str] = (),
    points: str = "",
    version: str = "1.0",
) -> Path:
    """A package as pip installs it."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    whole = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **({f"{info}/entry_points.txt": points} if points else {}),
    }
    record = "".join(f"{file},sha256={_sign(text)},{len(text.encode())}\n" for file, text in whole.items())
    folder.mkdir(exist_ok=True)
    return make_zip(
        folder / f"{name}-{version}-py3-none-any.whl", {**whole, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}
    )


def offer(place: Path, *wheels: Path, digest: str = "") -> None:
    """A registry with these, for a web host. `digest`: what it says of each, in place of its hash."""
    for file in wheels:
        name = file.name.split("-")[0]
        said = digest or hashlib.sha256(file.read_bytes()).hexdigest()
        put(place / "simple" / name, {"index.html": f'<a href="{file.name}#sha256={said}">{file.name}</a>'})
        shutil.copy(file, place / "simple" / name)


def _sign(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
