"""What speaks gives a voice note where that can be made of it, a file else, and nothing twice."""

import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Protocol

import msgspec
import pytest

from gateway.config.home import Home
from gateway.config.settings import Settings
from gateway.daemon.gateway import build_voice_programs
from gateway.errors import VoiceError
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.voice import AnswerSpeaker, VoicePrograms
from gateway.voice.speaker import LARGEST
from gateway.worker.protocol import ForkServerSettings

FLITE = ("flite", "-voice", "slt", "-o", "{file}")


class MakeSpeaker(Protocol):
    def __call__(self, *command: str, env: Mapping[str, str] | None = None) -> AnswerSpeaker: ...


@pytest.fixture
async def make_speaker(tmp_path: Path) -> AsyncIterator[MakeSpeaker]:
    async with ForkServerClient(ForkServerSettings(processes=256)) as fork_server:

        def make(*command: str, env: Mapping[str, str] | None = None) -> AnswerSpeaker:
            (tmp_path / "own").mkdir()
            settings = msgspec.json.decode(json.dumps({"voice": {"speak": {"command": command}}}), type=Settings)
            around = {"PATH": os.environ["PATH"]} if env is None else env
            programs = VoicePrograms(around, "x", fork_server.start_program)
            return AnswerSpeaker(lambda: settings, programs, tmp_path / "own" / "voice")

        yield make


def list_files(root: Path) -> list[tuple[str, int]]:
    """With what others may do with them."""
    found = (path for path in root.rglob("*") if path.is_file())
    return [(str(path.relative_to(root)), path.stat().st_mode & 0o777) for path in found]


@pytest.mark.parametrize("command", [FLITE, ("sh", "-c", "t=$(mktemp) && flite -voice slt -o $t && cat $t; rm $t")])
async def test_what_is_spoken_becomes_a_voice_note(
    make_speaker: MakeSpeaker, tmp_path: Path, command: tuple[str, ...]
) -> None:
    made = await make_speaker(*command).say("hello world", tmp_path / "files" / "a1")
    assert (made.kind, made.name, made.media_type) == ("voice", "answer.ogg", "audio/ogg")
    assert list_files(tmp_path) == [("files/a1.ogg", 0o600)]
    assert Path(made.path).read_bytes()[28:36] == b"OpusHead"  # noqa: ASYNC240


async def test_where_nobody_converts_it_is_a_file(make_speaker: MakeSpeaker, tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "flite").symlink_to("/usr/bin/flite")
    made = await make_speaker(*FLITE, env={"PATH": str(bare)}).say("hello", tmp_path / "a1")
    assert (made.kind, made.name, made.media_type) == ("audio", "answer.wav", "audio/wav")


async def test_what_was_spoken_before_is_not_spoken_again(make_speaker: MakeSpeaker, tmp_path: Path) -> None:
    speaker = make_speaker("sh", "-c", f"echo said >> {tmp_path}/calls; flite -voice slt -o $0", "{file}")
    for _ in range(2):
        made = await speaker.say("hello", tmp_path / "a1")
        assert made.path == str(tmp_path / "a1.ogg")
    assert (tmp_path / "calls").read_text() == "said\n"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("sh", "-c", "cat > {file}"), "no audio that is known"),
        (("true", "{file}"), "wrote no audio"),
        (("nobody-speaks",), "cannot be started"),
        (("sh", "-c", "head -c 60000000 /dev/zero > {file}"), "more than 25 MB"),
        (("sh", "-c", "ln -s /etc/passwd {file}"), "no audio that is known"),
        ((), "nobody speaks"),
    ],
)
async def test_what_cannot_be_spoken_is_said_and_leaves_nothing(
    make_speaker: MakeSpeaker, tmp_path: Path, command: tuple[str, ...], why: str
) -> None:
    with pytest.raises(VoiceError, match=why):
        await make_speaker(*command).say("hello", tmp_path / "a1")
    assert list_files(tmp_path) == []


async def test_a_file_that_is_too_large_is_not_taken(make_speaker: MakeSpeaker, tmp_path: Path) -> None:
    whole = f"printf RIFF0000WAVE; head -c {LARGEST} /dev/zero"
    with pytest.raises(VoiceError, match=r"without end|more than"):
        await make_speaker("sh", "-c", whole).say("hello", tmp_path / "a1")


async def test_where_nothing_forks_it_is_spoken_too(tmp_path: Path) -> None:
    async with ForkServerClient(ForkServerSettings(processes=256, fork=False)) as fork_server:
        programs = build_voice_programs({"PATH": os.environ["PATH"]}, Home(tmp_path), fork_server)
        assert await programs.run(("sh", "-c", "cat"), tmp_path, b"hello") == b"hello"
