"""The settings of voice messages and spoken answers."""

from typing import Annotated

from msgspec import Meta, Struct

from gateway.config.fields import describe
from gateway.yaml_source.units import Duration

LANGUAGE_PATTERN = r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*"


class ProgramReach(Struct, frozen=True, kw_only=True):
    """The reach of a program that hears or speaks, beside itself and the libraries of this machine."""

    read: Annotated[
        tuple[str, ...], describe("further files and folders that the program reads, beside those of its arguments")
    ] = ()
    write: Annotated[
        tuple[str, ...], describe("further files and folders that the program writes, such as a cache")
    ] = ()
    network: Annotated[
        bool | None,
        describe("whether the program has the network; by default in a home from before this setting alone"),
    ] = None


class TranscriptionSettings(ProgramReach, frozen=True, kw_only=True):
    """The model or program that transcribes voice messages; off until one of them is set."""

    model: Annotated[str, describe("a name under `models` whose endpoint has `/audio/transcriptions`")] = ""
    command: Annotated[
        tuple[str, ...], describe("a program that prints the words of `{file}`; `{language}` is `voice.language`")
    ] = ()

    def __post_init__(self) -> None:
        if self.model and self.command:
            raise ValueError("what transcribes is either a `model` or a `command`", "write one of the two")


class SpeakerSettings(ProgramReach, frozen=True, kw_only=True):
    """The model or program that reads answers aloud to people who want that; off until one of them is set."""

    model: Annotated[str, describe("a name under `models` whose endpoint has `/audio/speech`")] = ""
    voice: Annotated[str, describe("which voice of that model speaks", max_length=200)] = "alloy"
    command: Annotated[
        tuple[str, ...],
        describe("a program that reads words, and prints audio or writes `{file}`; `{language}` is `voice.language`"),
    ] = ()

    def __post_init__(self) -> None:
        if self.model and self.command:
            raise ValueError("what speaks is either a `model` or a `command`", "write one of the two")


class VoiceSettings(Struct, frozen=True, kw_only=True):
    """Voice notes and other audio that people send, and answers that are spoken to them."""

    transcribe: TranscriptionSettings = TranscriptionSettings()
    speak: SpeakerSettings = SpeakerSettings()
    language: Annotated[
        str,
        describe("the language that is spoken, as `en` or `de-AT`; by default the recogniser finds out"),
        Meta(pattern=rf"^({LANGUAGE_PATTERN})?$"),
    ] = ""
    patience: Annotated[Duration, describe("how long the audio of one message or answer may take", ge=1, le=600)] = 60.0
