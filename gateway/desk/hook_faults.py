"""The faults of a hook at a desk: its events that no call of a desk has, and fields that say nothing there."""

import re
from collections.abc import Iterator

from gateway.desk.call import CONSTANT_FACTS
from gateway.events.catalogue import EVENT_SPECS
from gateway.hooks.filters import compile_filter
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.patterns import EventSelector
from gateway.hooks.places.sources import HookVersion

EVENTS = ("tool:before", "tool:after", "agent:start", "agent:end")
DECIDED = "tool:before"
_EMPTY = "|".join(name for name, value in CONSTANT_FACTS.items() if not value)
_READ = re.compile(rf"""(?:\[|\bget\(\s*)["']({_EMPTY})["']""")


def list_faults(version: HookVersion) -> list[str]:
    """List the faults of a hook. Another hook than a handler in Python is judged by its manifest alone."""
    if version.manifest is None:
        return []
    handler = version.path / version.manifest.entry
    is_read = version.manifest.wire == "worker" and handler.is_file()
    return list(_find_faults(version.manifest, handler.read_text("utf-8", "replace") if is_read else ""))


def _find_faults(manifest: Manifest, source: str) -> Iterator[str]:
    heard = [name for name in EVENTS if name in EventSelector(manifest.subscriptions)]
    for pattern in manifest.subscriptions:
        if not any(name in EventSelector((pattern,)) for name in EVENTS):
            yield f"`{pattern}` never occurs, only {', '.join(EVENTS)} do"
        elif pattern in manifest.intercepts and DECIDED not in EventSelector((pattern,)):
            yield f"`{pattern}` decides nothing, only {DECIDED} does"
    if not heard:
        return
    fields = {field.name for name in heard for field in EVENT_SPECS[name].all_fields}
    for field, wanted in manifest.when.items():
        is_met = compile_filter({field: wanted})
        if field not in fields:
            yield f"`when.{field}` is never met: a call has no such field"
        elif field in CONSTANT_FACTS and is_met and not is_met(CONSTANT_FACTS):
            yield f"`when.{field}` is never met: it is `{CONSTANT_FACTS[field] or '(empty)'}`"
    for field in dict.fromkeys(_READ.findall(source)):
        yield f"`{field}` is empty, and the handler reads it"
