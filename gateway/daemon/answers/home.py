"""Answers about the home: its log and its configuration. These verbs change nothing."""

from functools import partial
from typing import Any

from gateway.chats.rules import KEPT_ORIGIN
from gateway.config.home import get_process_environment
from gateway.config.loading import Configuration, read_configuration
from gateway.config.merge import COMMAND_LINE
from gateway.config.reference import SettingValue, describe_setting, list_differences, list_values, values_of
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base
from gateway.daemon.hooks import list_sources
from gateway.daemon.unknown_names import find_unknown_hooks
from gateway.errors import AccessError
from gateway.logs.lines import LEVELS, LogLine, from_json
from gateway.logs.log_files import LineFilter, LogFollower, LogPlace, read_last_lines
from gateway.logs.verbs import MOST_LINES, LogParams
from gateway.messages.roles import is_admin
from gateway.records.activity import CALLER, OWNER
from gateway.threads import run_in_thread
from gateway.yaml_source.tree import Finding

FURTHEST = 50_000  # lines that are searched at most


async def logs_read(base: Base, params: LogParams) -> Any:
    if params.text and not is_admin(CALLER.get(OWNER).role):
        raise AccessError("your role does not see the texts of lines, so it cannot search them")
    return await run_in_thread(partial(read_log, base, params))


def read_log(base: Base, params: LogParams) -> dict[str, Any]:
    """Read lines of the log, the oldest first, and the place to continue from; `gap` means that lines are missing."""
    level = LEVELS.index(params.level or LEVELS[0])
    wanted = LineFilter(level, params.hook or None, params.session or None, params.since, params.text)
    at = LogPlace(*map(int, params.after.split("-"))) if params.after else None
    path = base.home.log
    with LogFollower(path, at) as follower:
        if at and not follower.is_gap:
            raws = [raw for raw in follower.read() if wanted.takes(from_json(raw))][-MOST_LINES:]
        else:
            raws = read_last_lines(path, wanted, params.lines, follower.begin, FURTHEST)
        place = "{}-{}".format(*follower.place)
        return {"lines": list(map(_line_to_json, raws)), "next": place, "gap": follower.is_gap}


def _line_to_json(raw: str) -> dict[str, Any]:
    line = from_json(raw) or LogLine(0.0, "", "", raw, {})
    return {**line._asdict(), "context": dict(line.context)}


async def config_show(base: Base, people: People) -> Any:
    configuration = base.current.configuration
    findings, differences = await run_in_thread(_compare_with_disk, base, configuration)
    shown = list_values(configuration, values_of(configuration.settings))
    shown += [SettingValue(f"chats.{chat}.{name}", it, KEPT_ORIGIN) for chat, name, it in people.chats.list_kept()]
    return {
        "file": str(base.home.config),
        "settings": [{**one._asdict(), "about": describe_setting(configuration.schema, one.name)} for one in shown],
        "differences": differences,
        "findings": [finding.as_fields() for finding in findings],
    }


def _compare_with_disk(base: Base, configuration: Configuration) -> tuple[list[Finding], list[str]]:
    """Return the findings of `config check` on disk, and the settings that differ from those in effect."""
    read, findings = read_configuration(configuration.schema, base.home, get_process_environment())
    if read is None:
        return findings, []
    differences = list_differences(configuration.settings, read.settings)
    chosen = {name for name, place in configuration.origins.items() if place == COMMAND_LINE}
    findings += find_unknown_hooks(read, list_sources(base.home, read))
    return findings, [name for name in differences if name not in chosen]
