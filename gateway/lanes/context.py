"""The settings and parts that all lanes of a node share."""

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
from gateway.messages.roles import Role
from gateway.records import records
from gateway.sessions.repository import SessionRepository
from gateway.turn_marks import TurnMarks

APOLOGY = "Sorry: I tried to answer this several times and failed each time. Please ask again, or ask differently."

PAGE = 100
ACK_WAIT = 10.5  # a doorbell that a dead node held rings again when the lease of the node expires

BUSY = "I am busy just now: your message is number {} in the queue."

DAMAGED = (
    "The record of this conversation was damaged on the disk, so I cannot go on with it. "
    "The person who runs me sees in the status what to do."
)

COMMAND_SIGNS = ("/", "!")

InterruptsTurn: TypeAlias = Callable[[Message], bool]
FindRole: TypeAlias = Callable[[Message], Role | None]
FindArrival: TypeAlias = Callable[[records.OwedReply], tuple[Sequence[NewRecord], Callable[[], None]] | None]


def is_same_person_continuing(first: Message, second: Message) -> bool:
    """Return True if two waiting messages are pieces of one text: of one author, in one place, no commands or jobs."""
    return (
        not first.is_job  # each moment of a job has an answer of its own
        and first.user_id == second.user_id
        and first.address == second.address
        and first.author == second.author
        and first.kind == second.kind == "text"
        and not first.text.startswith(COMMAND_SIGNS)
        and not second.text.startswith(COMMAND_SIGNS)
    )


def interrupt_on_text(message: Message) -> bool:
    """Return True if the message may end the running turn: a person's text or edit that is due now, and not a command.

    Commands and jobs wait for the end of the turn; urgent commands never reach a lane.
    """
    is_now = message.kind in ("text", "edit") and not message.due and not message.is_job
    return is_now and not message.text.startswith(COMMAND_SIGNS)


class LanePorts(msgspec.Struct, frozen=True):
    """The functions of other parts that lanes call.

    A message for which `interrupts` returns True ends the running turn; the transcript then contains both. `find_role`
    decides whose turn gets the next free slot. `listener` transcribes the audio of a turn's messages. `note` adds the
    pending events of durable hooks to the append that claims or cancels a turn. `arrive` returns the records to write
    for a reply that arrives with the append of its own record, and a function to call after the append; None: the
    outbox sends the reply.
    """

    interrupts: InterruptsTurn = lambda _message: False
    find_role: FindRole = lambda _message: "user"
    note: NoteClaim = ignore_claim
    arrive: FindArrival = lambda _owed: None
    listener: AudioListener | None = None


class LaneSettings(msgspec.Struct, frozen=True):
    """Limits and behaviour of lanes; times are in seconds.

    One turn answers at most `folded` waiting messages together: pieces of one text. The lane cancels a turn after
    `attempts` failed tries, after the process died in the turn's code `deaths` times, or when a turn older than
    `longest` would run again. A person who waits longer than `patience` for a slot gets a message once with their place
    in line. While `backlog` sessions have work, the gateway takes no further message and the networks keep them. After
    an edit of a running turn's message, the next turn starts after `calm`, since one edit often follows another.
    `ports` are the functions of other parts.
    """

    sessions: SessionSettings
    folded: int = 10
    attempts: int = 3
    deaths: int = 4
    longest: float = records.TRAFFIC_TTL
    pauses: tuple[float, ...] = (1.0, 5.0)  # after each failed try
    patience: float = 5.0
    backlog: int = 10_000
    calm: float = 1.0
    grace: float = 2.0  # for an interrupted turn to end
    release: float = 2.0  # to return a turn to the journal at the end
    lease: float = 10.0
    ack_wait: float = ACK_WAIT
    apology: str = APOLOGY
    ports: LanePorts = LanePorts()


class LaneContext(msgspec.Struct, frozen=True):
    """The parts that the lanes of a node share, and the node's name."""

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
