"""What an interrupted run of the same turn has done already, read from its records."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.steps import LlmStep, Step, ToolFinished, ToolStarted


@dataclass(frozen=True, slots=True)
class Replay:
    """Finished answers by hop, tools by call id. Where there are several records of one thing, the last one counts.

    `unjudged`: tools that have run, and about whose results an interceptor asked a person.
    """

    answers: dict[int, LlmStep] = field(default_factory=dict)
    started: dict[str, ToolStarted] = field(default_factory=dict)
    finished: dict[str, ToolFinished] = field(default_factory=dict)
    unjudged: dict[str, ToolFinished] = field(default_factory=dict)


def build_replay(steps: Sequence[Step], turn_id: str) -> Replay:
    """The records of this turn; those of its sub-agents carry the id of the call behind that of the turn."""
    known = Replay()
    for step in steps:
        if step.turn_id != turn_id:
            continue
        match step:
            case LlmStep():
                known.answers[step.hop] = step
            case ToolStarted():
                known.started[step.call_id] = step
            case ToolFinished():
                (known.finished if step.judged else known.unjudged)[step.call_id] = step
    return known
