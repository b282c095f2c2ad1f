"""Where trust is pinned, what was hashed is what runs: over the whole folder, and whatever is done to it meanwhile."""

import os
import threading
from pathlib import Path

import pytest

from gateway.config.settings import HooksSettings
from gateway.errors import HookError
from gateway.hooks import HookRegistry
from gateway.hooks.folders.switches import HookSwitches
from gateway.hooks.folders.trusted_copy import read_whole_folder
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


def test_byte_code_and_history_count_for_nothing(folder: Path) -> None:
    before = read_whole_folder(folder).digest
    for name in ("__pycache__", ".git"):
        (folder / name).mkdir()
        (folder / name / "x").write_text("x")
    assert read_whole_folder(folder).digest == before


@pytest.mark.parametrize("leads_to", ["/etc/hostname", "../secret", "lib/../../secret"])
def test_a_link_that_leads_out_is_refused(folder: Path, leads_to: str) -> None:
    (folder / "link").symlink_to(leads_to)
    with pytest.raises(HookError, match="leads out of the folder"):
        read_whole_folder(folder)


def test_what_is_no_file_is_refused_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(HookError, match="pipe is no file"):
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


async def test_what_was_trusted_by_its_code_alone_goes_on(home: Home) -> None:
    home.plant("one", "events: ['my:*']\n", home.noting("one", "1"))
    async with home.serving(HookRegistry(), settings=PINNED) as service:
        await service.trust("one")
        digest = (await service.info("one")).digest
        state = service._set.sources.switches._path.parent
    HookSwitches(state).trust("one", digest)
    async with home.serving(HookRegistry(), settings=PINNED) as service:
        assert (await service.info("one")).state == "loaded"
    async with home.serving(HookRegistry(), settings=PINNED) as service:
        assert (await service.info("one")).state == "loaded"


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
