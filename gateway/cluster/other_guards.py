"""Guards of other gateways on the journal whose folders are missing here.

A guard denies if it cannot answer, so a guard whose folder is missing denies too. From before the first turn on, such a
guard is listed as broken, with its name and the remedy. The entry ends when its folder is here, when no other gateway
has the guard any more, or when the record of the last gateway that had it expires (`other_hooks`).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gateway.hooks.manifests.manifest import Guard
from gateway.hooks.places.sources import HookVersion, MissingSource
from gateway.records.records import HookGuard
from gateway.yaml_source.tree import Finding, SourceLocation

MISSING = "is on {nodes} and missing here"
REMEDY = "bring its folder here, or remove it there"
MOST_NAMED = 3  # gateways


class GuardsOfOthers(Protocol):
    """The guards of other gateways, by hook and gateway."""

    @property
    def guards(self) -> Mapping[str, Mapping[str, HookGuard]]: ...


@dataclass(frozen=True)
class OtherGuardSource(MissingSource):
    """The source of missing guards, before the source of folders: so an added folder replaces the broken entry."""

    path: Path  # the folder in which their folders would be
    others: GuardsOfOthers
    origin: str = "other gateways"

    is_elsewhere = True

    def list(self) -> Iterator[HookVersion]:
        return (self._describe(name, found) for name, found in sorted(self.others.guards.items()))

    def find(self, name: str) -> HookVersion | None:
        found = self.others.guards.get(name)
        return self._describe(name, found) if found else None

    def _describe(self, name: str, found: Mapping[str, HookGuard]) -> HookVersion:
        missing = Finding(SourceLocation(name), MISSING.format(nodes=_describe_nodes([*found])), REMEDY)
        guards = tuple(found.values())
        denied, stored_as = _join(guards), guards[0].stored_as
        return HookVersion(name, self.path / name, self, findings=(missing,), denied=denied, stored_as=stored_as)


def _join(guards: Collection[HookGuard]) -> Guard:
    """Join the guards of one hook: gateways may have different versions of the hook."""
    intercepts = dict.fromkeys(name for one in guards for name in one.intercepts)
    first, *others = (one.when for one in guards)
    when = first if all(one == first for one in others) else {}
    return Guard(tuple(intercepts), when, min(one.order for one in guards))


def _describe_nodes(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    shown = [*names[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
    return f"gateway {names[0]}" if len(names) == 1 else f"gateways {', '.join(shown)}"
