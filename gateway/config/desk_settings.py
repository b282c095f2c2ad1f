"""The settings of the programs on a person's desk that ask this gateway before they run a tool."""

from typing import Annotated, Literal

from msgspec import Struct

from gateway.config.fields import describe
from gateway.yaml_source.units import Duration


class DeskSettings(Struct, frozen=True, kw_only=True):
    """Claude Code and other agents on this machine that ask the gateway (`hermes-gateway connect`)."""

    wait: Annotated[
        Duration,
        describe(
            "how long a question of theirs is open in an owner's chat; `connect` writes a longer limit into the "
            "program's settings, so connect again after a change",
            ge=1,
            le=3600,
        ),
    ] = 600.0
    unanswered: Annotated[
        Literal["ask", "deny"],
        describe("the answer after that time: `ask` leaves it to the program's own dialog"),
    ] = "ask"
    record: Annotated[
        bool,
        describe(
            "also keep prompts, results of tools and answers in the history of their sessions, which otherwise has "
            "questions and denials alone"
        ),
    ] = False
    down: Annotated[
        Literal["ask", "deny", "pass"],
        describe(
            "what a tool gets while the gateway does not answer: `ask` is the program's own dialog, and a denial for "
            "unattended work; `pass` is as if nothing were connected. Connect again after a change"
        ),
    ] = "ask"
