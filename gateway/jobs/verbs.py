"""The verbs of jobs. An operator sees the name of a job, its times and its state, and no text."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from gateway.jobs.job import Missed, Overlap
from gateway.verbs import Shown, Verb, show


class JobParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The job with this name; `MAKER/NAME` if several makers have one."""

    name: str


class JobListParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All jobs; each with at most so many `moments` of the past, and of the next twelve hours."""

    moments: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0


class JobHistoryParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The job with this name, as in `JobParams`, and at most so many of its moments."""

    name: str
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1000


class JobAddParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new job: its text for the agent, or a command that runs without a model, and when it is due.

    Its answer goes `to` a chat, as `send` takes it; without one, it stays in the history. `zone` is that of times and
    cron lines, by default `gateway.timezone`. After `max_time` seconds its turn or command is ended. A command that a
    crash cuts off runs again only if it is `repeatable`. The URL `ping` is called each time when it went well. A
    `paused` job waits until it is resumed.
    """

    name: str
    when: str
    text: Annotated[str, msgspec.Meta(max_length=20_000)] = ""
    command: Annotated[str, msgspec.Meta(max_length=20_000)] = ""
    to: str = ""
    zone: str = ""
    agent: str = ""
    model: str = ""
    missed: Missed = "once"
    overlap: Overlap = "skip"
    max_time: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 600.0
    repeatable: bool = False
    ping: str = ""
    replace: bool = False
    paused: bool = False


_MOMENT = show("due", "state", "late_by", "from", "to", "count")
_JOB: Mapping[str, Shown] = {
    **show("name", "maker", "when", "zone", "state", "next", "missed", "overlap", "max_time", "failures"),
    "last": _MOMENT,
    "past": _MOMENT,
    "ahead": True,
}
_NAME = "{said[name]}"

VERBS = (
    Verb("jobs.list", "List the jobs.", JobListParams, "operator", shown={"jobs": _JOB}, page="shared"),
    Verb("jobs.show", "Show a job.", JobParams, "operator", shown=_JOB),
    Verb(
        "jobs.history",
        "List the past runs of a job.",
        JobHistoryParams,
        "operator",
        shown={"moments": _MOMENT},
        page="look",
    ),
    Verb("jobs.add", "Create a job.", JobAddParams, "admin", on=_NAME, page=("name", "when", "text", "to", "zone")),
    Verb("jobs.pause", "Pause a job.", JobParams, "operator", shown=_JOB, on=_NAME, page=("name",)),
    Verb("jobs.resume", "Resume a paused job.", JobParams, "operator", shown=_JOB, on=_NAME, page=("name",)),
    Verb("jobs.run", "Run a job now, in addition to its schedule.", JobParams, "admin", on=_NAME, page=("name",)),
    Verb("jobs.remove", "Remove a job.", JobParams, "admin", on=_NAME, page=("name",)),
)
