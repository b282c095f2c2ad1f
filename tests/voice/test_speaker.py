"""A speaker gives a voice note if possible, a file otherwise, and nothing twice."""

import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Protocol

import msgspec
import pytest

from gateway.config.home import Home
from gateway.config.settings import Settings
from gateway.config.voice_settings import ProgramReach
from gateway.daemon.groups.work import build_voice_programs
from gateway.errors import VoiceError
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.voice.program import VoicePrograms
from gateway.voice.speaker import LARGEST, AnswerSpeaker
from gateway.worker.protocol import ForkServerSettings
from gateway.worker.sandbox import find_support

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
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\nflite -voice slt -o "$1"\n')
    program.chmod(0o755)
    speaker = make_speaker(str(program), "{file}")
    for _ in range(2):
        made = await speaker.say("hello", tmp_path / "a1")
        assert made.path == str(tmp_path / "a1.ogg")
        program.unlink(missing_ok=True)


HOSTILE = """
cat "$1" {model} {shown} {secret}
echo x > {secret} || echo x > {model} || echo x > here
echo x > "$TMPDIR/mine" && cat "$TMPDIR/mine"
{python} -c 'import socket; socket.create_connection(("127.0.0.1", {port}), 5); print("through")' || true
"""


@pytest.mark.machine
@pytest.mark.skipif(bool(find_support().missing), reason="this kernel does not hold all that is tried here")
@pytest.mark.parametrize("network", [None, False, True])
async def test_a_program_that_a_voice_note_has_taken_over_reaches_little(tmp_path: Path, network: bool | None) -> None:
    for name in ("heard", "model", "shown", "secret"):
        (tmp_path / name).write_text(f"[{name}]")
    with socket.create_server(("127.0.0.1", 0)) as server:
        async with ForkServerClient(ForkServerSettings(processes=256)) as fork_server:
            programs = VoicePrograms({"PATH": os.environ["PATH"]}, "x", fork_server.start_program)
            places = {name: str(tmp_path / name) for name in ("model", "shown", "secret")}
            script = HOSTILE.format(port=server.getsockname()[1], python=sys.executable, **places)
            command = ("sh", "-c", script, "sh", f"{tmp_path}/heard", f"--model={tmp_path}/model")
            reach = ProgramReach(read=(f"{tmp_path}/shown",), network=network)
            said = (await programs.run(command, tmp_path, b"", reach)).decode()
    assert said.replace("through\n", "") == "[heard][model][shown]x\n"
    assert ("through" in said) is (network is True)
    assert not (tmp_path / "here").exists()
    assert (tmp_path / "secret").read_text() == "[secret]"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("sh", "-c", "cat > {file}"), "not audio that is known"),
        (("true", "{file}"), "wrote no audio"),
        (("nobody-speaks",), "cannot be started"),
        (("sh", "-c", "head -c 60000000 /dev/zero > {file}"), "more than 25 MB"),
        (("sh", "-c", "ln -s /etc/passwd {file}"), "not audio that is known"),
        ((), "speech has ended"),
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
