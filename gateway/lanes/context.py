"""What all lanes of a node share: their settings, and the parts that they work with."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import anyio
import msgspec

from gateway.config.settings import SessionSettings
from gateway.engine.interface import Engine, NewRecord
from gateway.lanes.audio import AudioListener
from gateway.lanes.peers import Peers
from gateway.lanes.slots import Slots
from gateway.lanes.turn import NoteClaim, RunTurn, ignore_claim
from gateway.messages.message import Message
from gateway.records import records
from gateway.roles import Role
from gateway.sessions.repository import SessionRepository
from gateway.turn_marks import TurnMarks

APOLOGY = "Sorry: I tried to answer this several times and failed each time. Please ask again, or ask differently."

PAGE = 100
ACK_WAIT = 10.5  # a doorbell whose node died rings again when the lease of the node is over

BUSY = "I am busy just now: yours is number {} in line."

DAMAGED = (
    "What is kept of this conversation was damaged on the disk, so I cannot go on with it. Whoever runs me sees in the "
    "status what to do."
)

COMMAND_SIGNS = ("/", "!")

InterruptsTurn: TypeAlias = Callable[[Message], bool]
FindRole: TypeAlias = Callable[[Message], Role | None]
FindArrival: TypeAlias = Callable[[records.OwedReply], tuple[Sequence[NewRecord], Callable[[], None]] | None]


def is_same_person_continuing(first: Message, second: Message) -> bool:
    """Returns True for two waiting messages that are one text in pieces: of one author, in one place, no commands."""
    return (
        first.user_id == second.user_id
        and first.address == second.address
        and first.author == second.author
        and first.kind == second.kind == "text"
        and not first.text.startswith(COMMAND_SIGNS)
        and not second.text.startswith(COMMAND_SIGNS)
    )


def interrupt_on_text(message: Message) -> bool:
    """Returns True for texts: they end the running turn; edits, if they are of what it answers.

    Commands wait for it; urgent ones never come here. A message that has to wait itself ends none.
    """
    return message.kind in ("text", "edit") and not message.text.startswith(COMMAND_SIGNS) and not message.due


class LaneSettings(msgspec.Struct, frozen=True):
    """Limits, times in seconds, and manners of lanes.

    One turn answers at most `folded` waiting messages together: those that are one text in pieces. A message that
    `interrupts` ends the running turn; both are in the transcript afterwards. A turn is given up after so many tries
    that failed (`attempts`) or in whose code the process died (`deaths`), or when it is to begin anew after `longest`.
    Who waits longer than `patience` for a slot is told once how many are before them; `find_role` says who comes first.
    While `backlog` sessions have something to do, no further message is taken: the networks keep it. `listener` makes
    words of the audio of a turn's messages. `note` says what durable hooks are owed of a claim, or of a turn that is
    given up, for the append that says so. `arrive` gives the records beside a reply that arrives with its own record,
    and a function to call then; None: the reply is sent. Before a turn is begun again since its message was edited,
    `calm` passes: who edits once edits often.
    """

    sessions: SessionSettings
    folded: int = 10
    attempts: int = 3
    deaths: int = 4
    longest: float = records.TRAFFIC_TTL
    pauses: tuple[float, ...] = (1.0, 5.0)  # after a failed try, before the next
    patience: float = 5.0
    backlog: int = 10_000
    calm: float = 1.0
    grace: float = 2.0  # what an interrupted turn has left
    release: float = 2.0  # to give a turn back at the end
    lease: float = 10.0
    ack_wait: float = ACK_WAIT
    apology: str = APOLOGY
    interrupts: InterruptsTurn = lambda _message: False
    find_role: FindRole = lambda _message: "user"
    note: NoteClaim = ignore_claim
    arrive: FindArrival = lambda _owed: None
    listener: AudioListener | None = None


class LaneContext(msgspec.Struct, frozen=True):
    """The parts, and the node's name."""

    engine: Engine
    sessions: SessionRepository
    work: RunTurn
    settings: LaneSettings
    slots: Slots
    audio_slots: Slots
    node: str
    clock: Callable[[], float]
    marks: TurnMarks
    suspect: anyio.Lock
    peers: Peers
