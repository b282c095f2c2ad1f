"""What a hook needs is compared as packaging compares it, and what is missing is named."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version as Reference

from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.requirements import PackageRequirement, PackageVersion, find_missing_needs

RELEASES = st.lists(st.integers(0, 12), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))
VERSIONS = st.builds(
    "".join,
    st.tuples(
        RELEASES,
        st.sampled_from(["", "a1", "b2", "rc1", "-alpha.3"]),
        st.sampled_from(["", ".post1", "-2"]),
        st.sampled_from(["", ".dev3"]),
    ),
)


@given(VERSIONS, VERSIONS)
def test_versions_are_ordered_as_packaging_orders_them(left: str, right: str) -> None:
    assert (PackageVersion.parse(left) < PackageVersion.parse(right)) is (Reference(left) < Reference(right))
    assert (PackageVersion.parse(left) == PackageVersion.parse(right)) is (Reference(left) == Reference(right))


@given(VERSIONS, st.sampled_from(["==", "!=", ">=", "<="]), VERSIONS)
def test_plain_comparisons_agree_with_packaging(given_version: str, operator: str, wanted: str) -> None:
    reference = SpecifierSet(f"{operator}{wanted}").contains(given_version, prereleases=True)
    assert PackageRequirement.parse(f"thing{operator}{wanted}").accepts(given_version) is reference


@given(RELEASES, st.sampled_from([">", "<", "~=", "=="]), RELEASES)
def test_releases_agree_with_packaging_for_every_operator(given_version: str, operator: str, wanted: str) -> None:
    if operator == "~=" and "." not in wanted:
        wanted += ".0"
    if operator == "==":
        wanted += ".*"
    reference = SpecifierSet(f"{operator}{wanted}").contains(given_version)
    assert PackageRequirement.parse(f"thing {operator} {wanted}").accepts(given_version) is reference


@pytest.mark.parametrize("text", ["", ">=1", "a b", "httpx>=", "httpx>=x", "httpx ~= 1", "httpx>1.*", "x; y", "x @ u"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        PackageRequirement.parse(text)


def test_what_is_missing_is_named_with_its_remedy() -> None:
    manifest = Manifest(
        folder="weather",
        name="weather",
        needs_bins=("no-such-program", "sh"),
        needs_env=("API_KEY", "HOME"),
        needs_python=("msgspec>=0.1", "msgspec>=99", "no-such-package"),
        needs_platforms=("telegram",),
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
    manifest = Manifest(folder="x", name="x", needs_python=("no-such-thing>=1",))
    assert list(find_missing_needs(manifest, {}, [], [str(tmp_path)])) == []
