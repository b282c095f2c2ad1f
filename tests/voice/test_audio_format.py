"""Audio is known by its beginning, and the shape of a voice note is read from it without decoding it."""

import subprocess
from pathlib import Path

import pytest

from gateway.voice.audio_format import calculate_shape, infer_media_type


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """The same words as WAV, and as a voice note."""
    root: Path = tmp_path_factory.mktemp("spoken")
    words = b"please remind me to buy milk tomorrow morning"
    subprocess.run(["flite", "-voice", "slt", "-o", root / "said.wav"], input=words, check=True)
    subprocess.run(["opusenc", "--quiet", root / "said.wav", root / "said.ogg"], check=True)
    return (root / "said.wav").read_bytes(), (root / "said.ogg").read_bytes()


def test_audio_is_known_by_how_it_begins(spoken: tuple[bytes, bytes]) -> None:
    wav, note = spoken
    assert (infer_media_type(wav), infer_media_type(note)) == ("audio/wav", "audio/ogg")
    begins = {b"ID3\x04": "audio/mpeg", b"\xff\xfb\x90": "audio/mpeg", b"fLaC": "audio/flac"}
    begins |= {b"\0\0\0\x20ftypM4A ": "audio/mp4", b"OggS vorbis": "", b"{}": "", b"": "", b"\xff": ""}
    assert {begin: infer_media_type(begin) for begin in begins} == begins


def test_a_voice_note_is_as_long_as_what_was_said_and_quiet_at_its_ends(spoken: tuple[bytes, bytes]) -> None:
    wav, note = spoken
    shape = calculate_shape(note, 64)
    assert shape.seconds == pytest.approx((len(wav) - 44) / 32_000, abs=0.05)
    assert len(shape.loudness) == 64
    assert max(shape.loudness) == 255
    assert max(shape.loudness[-1], shape.loudness[0]) < 200


def test_what_is_cut_or_no_note_has_some_shape(spoken: tuple[bytes, bytes]) -> None:
    _, note = spoken
    for size in (*range(200), *range(200, len(note), 997)):
        shape = calculate_shape(note[:size], 256)
        assert 0 <= shape.seconds <= 4
        assert 1 <= len(shape.loudness) <= 256
