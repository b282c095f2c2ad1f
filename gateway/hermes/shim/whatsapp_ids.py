"""The names of one person of WhatsApp: a telephone number, or ids that its bridge maps to one."""

import json
import re

from gateway.hermes.shim.home import get_hermes_dir

_SAFE = re.compile(r"[A-Za-z0-9@.+-]+\Z")
_NUMBER = re.compile(r"\+?[\d\s().-]+\Z")


def normalize_whatsapp_identifier(value: str) -> str:
    """Return the bare number: `60123:47@s.whatsapp.net` -> `60123`."""
    return str(value or "").strip().replace("+", "", 1).split(":", 1)[0].split("@", 1)[0]


def to_whatsapp_jid(value: str) -> str:
    """Return the address for sending a message; a text that is not a plain number stays as it is."""
    text = str(value or "").strip()
    if "@" in text:
        person, _, domain = text.partition("@")
        return f"{person.split(':', 1)[0]}@{domain}"
    digits = re.sub(r"\D+", "", text)
    return f"{digits}@s.whatsapp.net" if digits and _NUMBER.match(text) else text


def expand_whatsapp_aliases(identifier: str) -> set[str]:
    """Return all names of this person in the bridge's files, with the given one."""
    folder = get_hermes_dir("platforms/whatsapp/session", "whatsapp/session")
    found: set[str] = set()
    waiting = [normalize_whatsapp_identifier(identifier)]
    while waiting:
        name = waiting.pop()
        if not name or name in found or not _SAFE.match(name):
            continue
        found.add(name)
        for suffix in ("", "_reverse"):
            try:
                mapped = json.loads((folder / f"lid-mapping-{name}{suffix}.json").read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            waiting.append(normalize_whatsapp_identifier(str(mapped)))
    return found


def canonical_whatsapp_identifier(identifier: str) -> str:
    """Return the one name under which this person is kept: the shortest, then the first."""
    return min(expand_whatsapp_aliases(identifier), key=lambda name: (len(name), name), default="")
