"""The verdict on a siege, from its people, networks, hooks, tools and processes; the journal is not read."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.siege.hooks import Notes
from tests.siege.model import NUMBER, Model, is_forbidden
from tests.siege.people import APOLOGY, QUESTION, Crowd, Person

MAY_REPEAT = ("telegram",)  # it can neither be asked what it has nor told that a message is the same


@dataclass
class Verdict:
    """Each list has what broke the promise of its name, in words."""

    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    said: int = 0
    in_doubt: int = 0  # shown twice where a kill cut off the call that sends
    strange: set[str] = field(default_factory=set)  # what else people were told, or did

    @property
    def lists(self) -> dict[str, list[str]]:
        names = ("lost", "twice", "order", "untold", "given_up", "skipped", "left")
        return {name.replace("_", " "): getattr(self, name) for name in names}


@dataclass(frozen=True)
class Doubt:
    """For how long after a message was shown a kill leaves in doubt whether the gateway knows of it.

    That it was shown is written by the server that leads; in an `election` there is none.
    """

    cuts: list[float]
    seconds: float
    elections: Sequence[tuple[float, float]] = ()

    def excuses(self, first: float, again: float) -> bool:
        writable = next((end for begun, end in self.elections if begun <= first <= end), first)
        return any(first - 0.1 <= cut <= min(writable + self.seconds, again) for cut in self.cuts)


def judge(crowd: Crowd, notes: Notes, model: Model, doubt: Doubt) -> Verdict:
    """What was said to people, and what was done; `untold` and `left` are added by who waits for them."""
    found = Verdict(said=len(list(crowd.all_said())))
    for person in crowd.people:
        judge_chat(found, crowd, person, doubt)
    for typist in crowd.typists:
        for number, answer in typist.answers.items():
            if number not in answer["reply"]:
                kind = found.given_up if answer["status"] == "failed" else found.lost
                kind.append(f"{number} at the terminal was told {answer['reply'][:50]!r}")
    told = {number for typist in crowd.typists for number in typist.answers}
    found.lost += [f"{number} at the terminal has no answer" for number in crowd.typed if number not in told]
    judge_tools(found, notes)
    if model.tools and not notes.tool_runs():
        found.skipped.append("the tool never ran, so nothing was guarded")
    found.untold = untold(crowd, notes, model)
    return found


def judge_chat(found: Verdict, crowd: Crowd, person: Person, doubt: Doubt) -> None:
    where = f"{person.wire.network} {person.name}"
    times, apologies, questions = defaultdict[str, list[float]](list), 0, 0
    for one in person.shown():
        if QUESTION.search(one.text):
            questions += 1
            continue
        numbers = NUMBER.findall(one.text)
        for number in numbers:
            times[number].append(crowd.seen[person.wire.network, one.id])
        if APOLOGY.match(one.text):
            apologies += 1
        elif not numbers:
            found.strange.add(f"were told {one.text[:60]!r}")
    missing = [number for number in person.said if number not in times]
    if missing[:questions]:
        found.strange.add("answered a question")
    missing = missing[questions:]
    given_up = [f"{number} on {where} was given up" for number in missing] if apologies else []
    found.given_up += given_up or [f"{where} was told an apology"] * apologies
    found.lost += [] if apologies else [f"{number} on {where} has no answer" for number in missing]
    for number, shown in times.items():
        for first, again in pairwise(shown):
            if person.wire.network in MAY_REPEAT and doubt.excuses(first, again):
                found.in_doubt += 1
            else:
                cut = next((f", {first - cut:+.1f} s from a cut" for cut in reversed(doubt.cuts) if cut <= again), "")
                found.twice.append(f"{number} on {where}, again after {again - first:.1f} s{cut}")
    shown_first = sorted(times, key=lambda number: times[number][0])
    found.order += [f"{b} before {a} on {where}" for b, a in pairwise(shown_first) if a < b]


def judge_tools(found: Verdict, notes: Notes) -> None:
    runs, guarded = notes.tool_runs(), notes.guarded()
    found.skipped += [f"{number} ran and the guard was not asked" for number in runs if number not in guarded]
    found.skipped += [f"{number} ran and the guard denied it" for number in runs if is_forbidden(number)]
    found.twice += [f"the tool ran twice for {number}" for number in {one for one in runs if runs.count(one) > 1}]


def untold(crowd: Crowd, notes: Notes, model: Model) -> list[str]:
    """What durable hooks were owed and never told."""
    ends, everything = notes.told("ends"), notes.told("everything")
    missing = [f"{number}: agent:end" for number in sorted(crowd.answered - ends["agent:end"])]
    for name in ("agent:end", "message:received", "message:sent"):
        missing += [f"{number}: {name} of *" for number in sorted(crowd.answered - everything[name])]
    return missing + [f"{number}: tool:after of *" for number in sorted(model.tools - everything["tool:after"])]
