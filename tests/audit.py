"""Reads a journal and says what is wrong with it: who was answered how often, in which order, what was sent twice.

The journal itself is looked at, never what a worker believes it did.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from gateway.engine.interface import Engine
from gateway.records import records, subjects
from gateway.sessions.session import Session, apply_record

FINAL_ID = re.compile(r":(reply(:[0-9]+)?|failed)\Z")


@dataclass
class Audit:
    """The findings; `faults` is empty when all is well."""

    faults: list[str] = field(default_factory=list)
    inbound: int = 0
    turns: int = 0
    retries: int = 0
    replies: int = 0
    sent: int = 0

    def expect(self, is_so: object, what: str) -> None:
        if not is_so:
            self.faults.append(what)


async def audit(engine: Engine, *, is_over: bool = True, is_sent: bool = False) -> Audit:
    """Check that each message is answered once and in order, each turn committed once, and each reply sent."""
    found, by_subject = Audit(), await everything(engine)
    for subject, chain in by_subject.items():
        _, kind, conv, *_ = (*subject.split(".", 2), "")  # some stand on a subject of their kind alone
        if kind == "turn":
            inbound = [seq for seq, _ in by_subject.get(f"gw.in.{conv}", [])]
            done = judge_turns(found, conv, chain, inbound, is_over=is_over)
            owed = [one for name, outs in by_subject.items() if is_owed(name, conv) for one in outs]
            judge_replies(found, conv, done, sorted(owed, key=lambda one: one[0]))
        if kind == "in":
            found.inbound += len(chain)
            found.expect(not is_over or f"gw.turn.{conv}" in by_subject, f"{conv}: nobody ever looked at it")
        if kind == "out" and subjects.is_sent(subject):
            found.sent += len(chain)
        elif kind == "out" and is_sent:
            place = conv.rpartition(".")[0]
            judge_sent(found, place, chain, by_subject.get(f"gw.sent.{place}", []))
    return found


def is_owed(subject: str, conv: str) -> bool:
    return subject.startswith("gw.out.") and subject.endswith(f".{conv}")


async def everything(engine: Engine) -> dict[str, list[tuple[int, Any]]]:
    found: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    after = 0
    while page := await engine.read("gw.>", after, 1000):
        for record in page:
            found[record.subject].append((record.seq, records.decode(record.data)))
        after = page[-1].seq
    return found


def judge_turns(
    found: Audit, conv: str, chain: list[tuple[int, Any]], inbound: list[int], *, is_over: bool
) -> list[records.TurnEnded]:
    """The chain obeys its own law: one claim at a time, steps of the claimed turn alone, ends that only go forward."""
    session = Session(conv)
    answered: list[int] = []
    ends: list[records.TurnEnded] = []
    for seq, kept in chain:
        turn = session.turn
        where = f"{conv}@{seq}"
        if isinstance(kept, records.Claim):
            found.retries += kept.attempt > 1
            found.expect(turn is None or turn.turn_id == kept.turn_id, f"{where}: a second turn beside an open one")
        if isinstance(kept, records.LlmStep | records.ToolStarted | records.ToolFinished | records.QuestionsAsked):
            found.expect(turn and turn.turn_id == kept.turn_id and turn.by, f"{where}: a step of a turn nobody holds")
        if isinstance(kept, records.TurnEnded):
            found.turns += 1
            found.expect(kept.upto > session.upto, f"{where}: an end that does not go forward")
            found.expect(turn is None or turn.turn_id == kept.turn_id, f"{where}: the end of another turn")
            found.expect(kept.turn_id not in [one.turn_id for one in ends], f"{where}: a turn that ended twice")
            answered += [one for one in inbound if session.upto < one <= kept.upto]
            ends.append(kept)
        session = apply_record(session, kept, seq)
    found.expect(answered == sorted(set(answered)), f"{conv}: answered out of order or twice")
    if is_over:
        found.expect(answered == inbound, f"{conv}: {len(inbound) - len(answered)} messages are not answered")
        found.expect(session.turn is None, f"{conv}: a turn is still open")
    return ends


def judge_replies(found: Audit, conv: str, ends: list[records.TurnEnded], owed: list[tuple[int, Any]]) -> None:
    """For each turn that ended well there is one reply, in the order of the turns."""
    # Words before a tool call nobody, and an empty part takes away what an earlier try has shown.
    answers = [out for _, out in owed if FINAL_ID.search(out.reply.id) and not (out.reply.silent or out.reply.is_empty)]
    final = [out.turn_id for out in answers]
    expected = [end.turn_id for end in ends if end.status in ("ok", "failed")]
    found.replies += len(final)
    found.expect(final == expected, f"{conv}: replies {final} for turns {expected}")


def judge_sent(found: Audit, place: str, outs: list[tuple[int, Any]], journal: list[tuple[int, Any]]) -> None:
    """Each reply has one final record, and parts follow each other."""
    for seq, out in outs:
        last = [one for _, one in journal if one.out == seq and is_final(one)]
        found.sent += len(last)
        found.expect(len(last) == 1, f"{place}: reply {out.reply.id} has {len(last)} ends")
    begun = [one.out for _, one in journal]
    found.expect(begun == sorted(begun), f"{place}: replies overtook each other")


def is_final(kept: records.SendRecord) -> bool:
    return (isinstance(kept, records.SendSucceeded) and kept.last) or (
        isinstance(kept, records.SendFailed) and kept.permanent
    )
