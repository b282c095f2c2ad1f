"""The combination of the answers of an event's interceptors into one outcome."""

from asyncio import CancelledError
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from gateway.errors import HookError, describe_error
from gateway.events import OUTCOMES, Deny, End, Event, Outcome, Pause, Question, Retry, is_yes, outcome_from
from gateway.events.outcomes import words_of
from gateway.hooks.deadlines import Deadline
from gateway.hooks.hook import Hook, Remark
from gateway.hooks.recorder import PIECE, HookDecision, OwedEvents
from gateway.hooks.subscriptions import PlannedCall

_ABSENT = object()


@dataclass(slots=True, eq=False)
class OutcomeCollector:
    """The answers to one event so far.

    The first `End` or hard `Deny` decides and ends the chain. Soft denials are joined; the last of several `Retry`
    counts; every question goes to the person. A denied operation needs no question, and an operation with an open
    question cannot be retried yet: so `Deny` comes before a question, and a question before `Retry`.
    """

    _event: Event
    _honoured: frozenset[str] | None
    _owed: OwedEvents | None = None
    _final: End | Deny | None = None
    _soft: list[Deny] = field(default_factory=list)
    _retry: Retry | None = None
    _questions: list[Question] = field(default_factory=list)

    def take(self, hook: Hook, answer: Any) -> bool:
        """Add a hook's answer. Return True if the answer ends the chain."""
        if answer is None or answer is self._event:
            return False
        try:
            if not isinstance(answer, Pause):
                return self._weigh(hook, outcome_from(answer, self._event))
            self._put(hook, answer)
        except Pause as pause:
            self._put(hook, pause)
        except (TypeError, ValueError) as error:
            return self.take(hook, _outcome_of_failure(hook, self._event, error))
        return False

    def raised(self, hook: Hook, error: BaseException, deadline: Deadline, rest: Iterable[PlannedCall]) -> bool:
        """Add an exception of a hook: an outcome or a question is its answer, an error is its failure.

        A hook that exits has failed, and so has a hook that is cancelled although the operation is not. When the time
        is over, all remaining hooks have failed too. A cancellation of the operation, and a KeyboardInterrupt, are
        raised again.
        """
        if isinstance(error, (*OUTCOMES, Pause)):
            return self.take(hook, error)
        if isinstance(error, CancelledError):
            if deadline.is_behind:
                late = TimeoutError(f"the hooks of {self._event.name} took longer than {deadline.limit:g} s")
                said = f": {late}"
                if self.take(hook, _outcome_of_failure(hook, self._event, late, said)):
                    return True
                return self.fail(rest, late, said)
            if deadline.is_cancelling:
                raise error
        elif not isinstance(error, Exception | SystemExit):
            raise error
        return self.take(hook, _outcome_of_failure(hook, self._event, error))

    def fail(self, calls: Iterable[PlannedCall], error: Exception, said: str = "") -> bool:
        """Count these calls as failed; the guards among these hooks deny. Return True if the chain ends."""
        for hook, _, _ in calls:
            if hook.applies(self._event.name, self._event) and self.take(
                hook, _outcome_of_failure(hook, self._event, error, said)
            ):
                return True
        return False

    def _weigh(self, hook: Hook, answer: Outcome | Question | Mapping[str, Any] | None) -> bool:
        if isinstance(answer, Question):
            # An approval in plain data: "yes" lets the operation continue, anything else does not.
            answer = None if is_yes(self._event.ask(answer.prompt, answer.name)) else Deny("The answer was no.")
        if isinstance(answer, Mapping):
            if changed := change_fields(self._event, answer, hook.remark):
                self._note(hook, "change", ", ".join(changed))
        elif answer is not None and self._is_honoured(hook, answer):
            self._note(hook, answer.decision, words_of(answer))
            return self._decide(answer)
        return False

    def _put(self, hook: Hook, pause: Pause) -> None:
        self._questions += pause.questions
        self._note(hook, pause.decision, str(pause))

    def _note(self, hook: Hook, decision: str, reason: str) -> None:
        """Record the decision for the journal, if the event belongs to a turn or delivery, and is no `llm:chunk`."""
        event = self._event
        if self._owed is not None and event.name != PIECE:
            mark, call_id, hop = (event.get(name) for name in ("id", "call_id", "hop"))
            made = HookDecision(str(mark), event.name, str(hook), decision, reason, str(call_id or ""), int(hop or 0))
            self._owed.add_decision(made)

    def _decide(self, outcome: Outcome) -> bool:
        if isinstance(outcome, Retry):
            self._retry = outcome
        elif isinstance(outcome, Deny) and outcome.soft:
            self._soft.append(outcome)
        else:
            self._final = outcome
        return self._final is not None

    def _is_honoured(self, hook: Hook, outcome: Outcome) -> bool:
        if self._honoured is None or outcome.decision in self._honoured:
            return True
        honoured = ", ".join(sorted(self._honoured)) or "no decision"
        what = f"answered {type(outcome).__name__} at {self._event.name}, which has no effect there"
        hook.remark(f"{what}: it honours {honoured}")
        return False

    def conclude(self) -> None:
        """Set the outcome of the event, or raise the questions."""
        event = self._event
        if self._final is not None:
            event.outcome = self._final
        elif len(self._soft) == 1:
            event.outcome = self._soft[0]
        elif self._soft:
            event.outcome = Deny("\n".join(deny.text for deny in self._soft), soft=True)
        elif self._questions:
            event.outcome = Pause(tuple(self._questions))
            raise event.outcome
        else:
            event.outcome = self._retry


def change_fields(event: Event, fields: Mapping[str, Any], remark: Remark) -> list[str]:
    """Apply a hook's changes, and return the changed fields; `remark` gets the refused changes."""
    writable, changed = event.writable, []
    for key, value in fields.items():
        if writable is None or key in writable:
            if event.get(key, _ABSENT) != value:
                changed.append(key)
            event[key] = value
        elif (known := event.get(key, _ABSENT)) is not value and known != value:
            remark(describe_refused_field(event.name, key, writable=writable))
    return changed


def describe_refused_field(name: str, *fields: str, writable: Iterable[str] = ()) -> str:
    """Describe an attempt to change read-only or misspelled fields."""
    near = [meant for field in fields for meant in get_close_matches(str(field), [*writable], 1)]
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return f"cannot change {', '.join(map(repr, fields))} at {name}; that is left as it was{meant}"


def _outcome_of_failure(hook: Hook, event: Event, error: BaseException, said: str = "") -> Deny | None:
    """Return the outcome of a hook's failure, by its `on_error`; `said` replaces the error in texts for people."""
    if hook.on_error == "raise":
        hook.failures += 1
        if isinstance(error, Exception | SystemExit):
            raise error
        raise HookError(f"{hook} failed at {event.name}: {describe_error(error)}") from error
    hook.failed(event.name, error)
    if hook.on_error != "deny" and event.name not in hook.traits.guards:
        return None
    why = said or (f": {error}" if isinstance(error, HookError) else f" ({type(error).__name__}).")
    helps = f"\n{hook.traits.remedy}" if hook.traits.remedy not in why else ""
    return Deny(f"{hook} guards this and failed{why}{helps}")
