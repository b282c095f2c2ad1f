"""Export a session: as complete JSON, and as Markdown for people."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import asdict

from gateway.messages.transcript import Entry
from gateway.sessions.session import Session

FORMAT = 1


def as_json(session: Session) -> str:
    """Return the whole session as JSON, without a running turn."""
    return msgspec.json.format(msgspec.json.encode(as_fields(session)), indent=2).decode() + "\n"


def as_fields(session: Session) -> dict[str, Any]:
    """Return the fields of a session that the JSON export has, by name."""
    return {
        "format": FORMAT,
        "session_id": session.session_id,
        "session_key": session.key,
        "title": session.title,
        "platform": session.platform,
        "user_id": session.user_id,
        "began": _format_time(session.began),
        "last_active": _format_time(session.last_active),
        "settings": session.settings,
        "bag": session.bag,
        "usage": asdict(session.usage),
        "turns": session.turns,
        "entries": [asdict(one) for one in session.entries],
        "decisions": session.decisions,
    }


def as_markdown(session: Session) -> str:
    """Return the session as Markdown: a heading for each speaker, and tools in code blocks that no content can end."""
    lines = [f"# {session.title or session.session_id}", ""]
    facts = {
        "session": session.session_id,
        "key": session.key,
        "began": _format_time(session.began),
        "last active": _format_time(session.last_active),
        "model": session.model,
    }
    lines += [f"- {name}: {value}" for name, value in facts.items() if value]
    for at, entry in enumerate(session.entries):
        lines += (*_render_decisions(session, at), *_render_words(entry))
    return "\n".join([*lines, *_render_decisions(session, len(session.entries))]) + "\n"


def _render_decisions(session: Session, at: int) -> list[str]:
    made = [one for one in session.decisions if one.entry == at]
    decided = [f"> hook {one.hook}: {one.decision} at {one.event}: {' '.join(one.reason.split())}" for one in made]
    return ["", *decided] if decided else []


def _render_words(entry: Entry) -> list[str]:
    if entry.role == "tool":
        return ["", f"### {entry.name or 'tool'}{' (failed)' if entry.error else ''}", "", *_fence(entry.content)]
    lines = ["", f"## {entry.role.capitalize()}"]
    if entry.content:
        lines += ["", entry.content]
    for call in entry.tool_calls:
        lines += ["", f"calls `{call.name}`", "", *_fence(json.dumps(call.args, ensure_ascii=False, indent=2), "json")]
    return lines


def _fence(text: str, language: str = "") -> list[str]:
    lines = [line.lstrip() for line in text.splitlines()]
    longest = max((len(line) - len(line.lstrip("`")) for line in lines), default=0)
    ticks = "`" * max(3, longest + 1)
    return [ticks + language, text, ticks]


def _format_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds") if at else ""
