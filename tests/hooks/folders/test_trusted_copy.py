"""With pinned trust, the hashed bytes are those that run: over the whole folder, whatever happens to it meanwhile."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.config.settings import HooksSettings
from gateway.errors import HookError
from gateway.hooks import HookRegistry
from gateway.hooks.places.trusted_copy import read_whole_folder
from tests.hooks.folders.workshop import Home, hook_of
from tests.spine import until

PINNED = HooksSettings(trust="pinned")
TELLS = "from pathlib import Path\n\nWORDS = (Path(__file__).parent / 'words.txt').read_text()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "hook"
    (found / "lib").mkdir(parents=True)
    (found / "handler.py").write_text("def handle(event_type, context): ...\n")
    (found / "lib" / "data.bin").write_bytes(bytes(range(256)))
    return found


@pytest.mark.row("T23")
@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "lib" / "data.bin").write_bytes(b"x"),
        lambda folder: (folder / "lib" / "more.sh").write_text(""),
        lambda folder: (folder / "lib" / "data.bin").unlink(),
        lambda folder: (folder / "lib" / "data.bin").rename(folder / "data.bin"),
        lambda folder: (folder / "handler.py").chmod(0o755),
        lambda folder: (folder / "lib" / "link").symlink_to("data.bin"),
        lambda folder: (folder / ".hidden").write_text("x"),
    ],
)
def test_every_change_of_the_folder_is_another_hash(folder: Path, change: object) -> None:
    before = read_whole_folder(folder).digest
    assert read_whole_folder(folder).digest == before
    change(folder)  # type: ignore[operator]
    assert read_whole_folder(folder).digest != before


@pytest.mark.row("T25")
def test_a_link_that_takes_a_folders_place_while_it_is_read_leads_nowhere(folder: Path, tmp_path: Path) -> None:
    """Whoever may write there would have what somebody else keeps installed with the hook, which then reads it."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "data.bin").write_text("precious")
    link, away, inner, end = tmp_path / "link", tmp_path / "away", folder / "lib", time.monotonic() + 1.5
    link.symlink_to(tmp_path / "there")

    def exchange() -> None:
        while time.monotonic() < end:
            inner.rename(away)
            link.rename(inner)
            inner.rename(link)
            away.rename(inner)

    with ThreadPoolExecutor(1) as others:
        done = others.submit(exchange)
        while not done.done():
            with suppress(HookError):
                assert b"precious" not in [data for _, data in read_whole_folder(folder).files.values()]


WORK = ("__pycache__/x.pyc", ".git/config", ".venv/bin/python", ".pytest_cache/README.md", "node_modules/ts/index.js")


@pytest.mark.parametrize(
    "name", [*WORK, ".idea/x.xml", ".handler.py.swp", "handler.py~", ".#handler.py", "lib/.mypy_cache/x"]
)
def test_what_lies_there_because_somebody_works_on_it_counts_for_nothing(folder: Path, name: str) -> None:
    before = read_whole_folder(folder).digest
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to("/usr/bin/python3")  # it would be refused
    assert read_whole_folder(folder).digest == before


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ({"dependencies": {"x": "1"}}, True),
        ({"devDependencies": {"x": "1"}}, False),
        ({"dependencies": {}}, False),
        ([], False),
    ],
)
def test_packages_of_node_count_where_the_hook_runs_with_them(folder: Path, said: object, counts: bool) -> None:
    (folder / "package.json").write_text(json.dumps(said))
    (folder / "node_modules" / "x").mkdir(parents=True)
    (folder / "node_modules" / "x" / "index.js").write_text("")
    assert ("node_modules/x/index.js" in read_whole_folder(folder).files) == counts


# The hash of the folder below, when its cache counted too.
WITH_A_CACHE = "folder:4d7821fe25fbee83b9ab65fa706487b91a86f4d07e16962f21681d7066383534"


@pytest.mark.row("T25")
@pytest.mark.parametrize(
    "links",
    [
        {"link": "/etc/hostname"},
        {"link": "../secret"},
        {"link": "lib/../../secret"},
        {"here": ".", "link": "here/../secret"},
        {"here": ".", "lib/back": "../here/..", "link": "lib/back/secret"},
        {"here": ".", "link": "here/../{name}/handler.py"},  # back in, and in a copy elsewhere
        {"link": "other", "other": "link"},
        {"link": "link"},
        {".git": "/etc", "link": ".git/hostname"},
    ],
    ids=lambda links: " ".join(links.values()),
)
def test_a_link_that_leads_out_is_refused(folder: Path, links: dict[str, str]) -> None:
    """Whatever it leads through: links to folders in the middle of the way, too."""
    (folder / "lib").mkdir(exist_ok=True)
    (folder.parent / "secret").write_text("secret")
    for name, leads_to in links.items():
        (folder / name).symlink_to(leads_to.format(name=folder.name))
    with pytest.raises(HookError, match="leads out of the folder"):
        read_whole_folder(folder)


def test_a_link_that_stays_inside_is_kept_through_others(folder: Path) -> None:
    (folder / "lib").mkdir(exist_ok=True)
    links = {"here": ".", "lib/up": "../here", "link": "lib/up/lib/../handler.py", "nothing": "lib/nothing"}
    for name, leads_to in links.items():
        (folder / name).symlink_to(leads_to)
    assert read_whole_folder(folder).links == links


def test_what_is_no_file_is_refused_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(HookError, match="pipe is not a file"):
        read_whole_folder(folder)


@pytest.mark.row("T23")
async def test_a_changed_file_of_data_waits_for_trust_too(home: Home) -> None:
    home.plant("one", "events: ['my:*']\n", TELLS + home.noting("one", "1"))
    (home.hooks / "one" / "words.txt").write_text("as trusted")
    async with home.serving(HookRegistry(), settings=PINNED) as service:
        await service.trust("one")
        assert (await service.info("one")).state == "loaded"
    (home.hooks / "one" / "words.txt").write_text("another")
    async with home.serving(HookRegistry(), settings=PINNED) as service:
        status = await service.info("one")
        assert status.state == "pending"
        assert "hooks trust one" in status.reason


@pytest.mark.row("T23")
async def test_what_is_put_in_place_of_the_code_while_it_starts_never_runs(home: Home) -> None:
    """The file alternates between what was trusted and what was not, while the hook is loaded again and again."""
    good, bad = home.noting("one", "good"), f"open({str(home.root / 'canary')!r}, 'w')\n" + home.noting("one", "bad")
    home.plant("one", "events: ['my:*']\n", good)
    handler, other = home.hooks / "one" / "handler.py", home.root / "other.py"
    over = threading.Event()

    def alternate() -> None:
        while not over.is_set():
            for text in (bad, good):
                other.write_text(text)
                other.replace(handler)

    registry = HookRegistry()
    async with home.serving(registry, settings=PINNED) as service:
        await service.trust("one")
        swapper = threading.Thread(target=alternate)
        swapper.start()
        try:
            for _ in range(60):
                await service.reload("one")
        finally:
            over.set()
            swapper.join()
        assert not (home.root / "canary").exists()
        handler.write_text(good)
        await service.reload("one")
        await until(lambda: hook_of(service, "one").process.state == "loaded")


async def test_of_the_copies_of_a_hook_two_are_kept(home: Home) -> None:
    home.plant("one", "events: ['my:*']\n", home.noting("one", "1"))
    async with home.serving(HookRegistry(), settings=PINNED) as service:
        await service.trust("one")
        for number in range(4):
            (home.hooks / "one" / "words.txt").write_text(str(number))
            await service.trust("one")
            await service.reload("one")
        copies = service._services.environment.copies / "one"
        assert 1 <= len(list(copies.iterdir())) <= 2
