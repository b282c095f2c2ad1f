"""Unpacks the context into dataclasses: a key more or less is an error."""

import dataclasses
import json
import os
import pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


@dataclasses.dataclass
class Startup:
    platforms: list


@dataclasses.dataclass
class Session:
    platform: str
    user_id: str
    session_id: str
    session_key: str


@dataclasses.dataclass
class TurnStart:
    platform: str
    user_id: str
    chat_id: str
    thread_id: str
    chat_type: str
    session_id: str
    message: str


@dataclasses.dataclass
class TurnEnd(TurnStart):
    response: str


@dataclasses.dataclass
class Command:
    platform: str
    user_id: str
    command: str
    raw_command: str
    args: str
    raw_args: str


KINDS = {"gateway:startup": Startup, "session:start": Session, "agent:start": TurnStart, "agent:end": TurnEnd}


async def handle(event_type, context):
    payload = KINDS.get(event_type, Command)(**context)
    SEEN.mkdir(exist_ok=True)
    with (SEEN / "typed-payload.jsonl").open("a") as file:
        file.write(json.dumps([event_type, sorted(dataclasses.asdict(payload))]) + "\n")
