"""A hook's requirements are compared as PEP 440 says, and missing ones are named."""

import sys
from pathlib import Path

import pytest

from gateway.hooks.folders.readiness import find_missing_needs, list_missing_packages
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.manifests.manifest_keys import ManifestRequires
from gateway.hooks.manifests.requirement import parse_requirement


@pytest.mark.parametrize(
    ("text", "version", "is_met"),
    [
        ("thing", "1.0.dev1", True),
        ("thing>=1,<2", "1.5", True),
        ("thing >= 1, < 2", "2.0", False),
        ("thing[extra] (~=1.4)", "1.9", True),
        ("thing~=1.4.2", "1.5", False),
        ("thing==1.*", "1.99", True),
        ("thing>=2", "2.0rc1", False),
        ("thing>=1", "2.0rc1", True),
        ("thing==1.0", "1.0+local", True),
        ("thing>1", "1.post1", False),
        ("thing===odd", "odd", True),
        ("thing", "odd", True),
        ("thing>=1", "odd", False),
    ],
)
def test_versions_are_compared_as_pep_440_says(tmp_path: Path, text: str, version: str, is_met: bool) -> None:
    (tmp_path / f"thing-{version}.dist-info").mkdir()
    missing = list_missing_packages([text], [str(tmp_path)])
    assert missing == ([] if is_met else [text])


@pytest.mark.parametrize("text", ["", ">=1", "a b", "httpx>=", "httpx>=x", "httpx ~= 1", "httpx>1.*", "x; y", "x @ u"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_requirement(text)


def test_the_reason_is_one_line() -> None:
    with pytest.raises(ValueError, match=r"^Expected package name at the start of dependency specifier$"):
        parse_requirement(">=1")


def test_what_is_missing_is_named_with_its_remedy() -> None:
    manifest = Manifest(
        folder="weather",
        name="weather",
        requires=ManifestRequires(
            bins=("no-such-program", "sh"),
            env=("API_KEY", "HOME"),
            python=("msgspec>=0.1", "msgspec>=99", "no-such-package"),
            platforms=("telegram",),
        ),
    )
    found = list(find_missing_needs(manifest, {"PATH": "/usr/bin:/bin", "HOME": "/root"}, ["discord"], sys.path))
    assert found[0].split(";")[0] == "the program no-such-program is not on the PATH"
    assert "API_KEY is not set" in found[1]
    assert "msgspec is there in version" in found[2]
    assert ">=99 is wanted" in found[2]
    assert "hooks deps weather" in found[3]
    assert "telegram is configured" in found[4]
    assert len(found) == 5


def test_a_package_beside_the_hook_counts(tmp_path: Path) -> None:
    """`hooks deps` installs into a folder of the hook's own; what stands there is found."""
    (tmp_path / "no_such_thing-1.2.dist-info").mkdir()
    (tmp_path / "no_such_thing-1.2.dist-info" / "METADATA").write_text("Name: no-such-thing\nVersion: 1.2\n")
    manifest = Manifest(folder="x", name="x", requires=ManifestRequires(python=("no-such-thing>=1",)))
    assert list(find_missing_needs(manifest, {}, [], [str(tmp_path)])) == []
