"""Outcomes: what the answers of an event's interceptors come to."""

import logging
from asyncio import CancelledError
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.errors import HookError, describe_error
from gateway.events import OUTCOMES, Deny, End, Event, Outcome, Pause, Question, Retry, is_yes, outcome_from
from gateway.hooks.deadlines import Deadline
from gateway.hooks.hook import Hook
from gateway.hooks.subscriptions import PlannedCall

log = logging.getLogger("gateway.hooks")

_ABSENT = object()


class OutcomeCollector:
    """The answers so far.

    The first `End` and the first hard `Deny` decide, and end the chain. Soft ones are joined; of several `Retry` the
    last one counts; of several questions all are put. What is denied need not be asked about, and what is asked about
    cannot be tried again yet: so `Deny` goes before a question, and a question before `Retry`.
    """

    __slots__ = ("_event", "_final", "_honoured", "_questions", "_retry", "_soft")

    def __init__(self, event: Event, honoured: frozenset[str] | None) -> None:
        self._event = event
        self._honoured = honoured
        self._final: End | Deny | None = None
        self._soft: list[Deny] = []
        self._retry: Retry | None = None
        self._questions: list[Question] = []

    def take(self, hook: Hook, answer: Any) -> bool:
        """Count in what a hook answered. Returns True when that ends the chain."""
        if answer is None or answer is self._event:
            return False
        try:
            if not isinstance(answer, Pause):
                return self._weigh(hook, outcome_from(answer, self._event))
            self._questions += answer.questions
        except Pause as pause:
            self._questions += pause.questions
        except (TypeError, ValueError) as error:
            return self.take(hook, _outcome_of_failure(hook, self._event, error))
        return False

    def raised(self, hook: Hook, error: BaseException, deadline: Deadline, rest: Iterable[PlannedCall]) -> bool:
        """Count in what a hook raised: an outcome or a question is its answer, an error is its failure.

        A hook that wants to exit has failed, and so has one that is cancelled while nobody cancels the operation. When
        the time is over, all the rest have failed too. A real cancellation, and a KeyboardInterrupt, are passed on.
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
        """Count in that none of these calls can be made: hooks that guard something deny. True when the chain ends."""
        for hook, _, _ in calls:
            if hook.applies(self._event.name, self._event) and self.take(
                hook, _outcome_of_failure(hook, self._event, error, said)
            ):
                return True
        return False

    def _weigh(self, hook: Hook, answer: Outcome | Question | Mapping[str, Any] | None) -> bool:
        if isinstance(answer, Question):
            # An approval, as plain data has it: a yes lets the operation through, whatever else does not.
            answer = None if is_yes(self._event.ask(answer.prompt, answer.name)) else Deny("The answer was no.")
        if isinstance(answer, Mapping):
            self._change(hook, answer)
        elif answer is not None and self._is_honoured(hook, answer):
            return self._decide(answer)
        return False

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
        kind, name = type(outcome).__name__, self._event.name
        log.warning("%s answered %s at %s, which has no effect there", hook, kind, name, extra={"hook": hook.key})
        return False

    def _change(self, hook: Hook, fields: Mapping[str, Any]) -> None:
        event, writable = self._event, self._event.writable
        for field, value in fields.items():
            if writable is None or field in writable:
                dict.__setitem__(event, field, value)
            elif (known := event.get(field, _ABSENT)) is not value and known != value:
                words = "%s cannot change %r at %s; that is left as it was"
                log.warning(words, hook, field, event.name, extra={"hook": hook.key})

    def conclude(self) -> None:
        """Give the event its outcome, or put the questions."""
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


def _outcome_of_failure(hook: Hook, event: Event, error: BaseException, said: str = "") -> Deny | None:
    """What a hook's `on_error` makes of its failure; `said`: how that is told, where it is no secret of the hook's."""
    if hook.on_error == "raise":
        hook.failures += 1
        if isinstance(error, Exception | SystemExit):
            raise error
        raise HookError(f"{hook} failed at {event.name}: {describe_error(error)}") from error
    hook.failed(event.name, error)
    if hook.on_error != "deny":
        return None
    why = said or (f": {error}" if isinstance(error, HookError) else f" ({type(error).__name__}).")
    helps = f"\n{hook.remedy}" if hook.remedy not in why else ""
    return Deny(f"{hook} guards this and failed{why}{helps}")
