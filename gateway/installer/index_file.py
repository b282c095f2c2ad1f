"""The file of an index: the hooks and skills that it names, with their sources, digests and requests."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from gateway.errors import HookError
from gateway.hooks.manifests.installed import HookGrants, Kind
from gateway.installer.fetched_hook import FetchedHook
from gateway.installer.fetched_skill import FetchedSkill
from gateway.logs.text import to_one_line

MAX_INDEX = 8 << 20
INDEX_VERSION = 1
VALID_DAYS = 90
SIGNATURE_ENDING = ".sig"

Line = Annotated[str, msgspec.Meta(max_length=1000)]


class ListedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A hook or a skill in an index. A source that begins with `./` starts at the folder of the index."""

    description: Line = ""
    version: Line = ""
    source: Line
    digest: Line


class ListedHook(ListedSource, frozen=True, kw_only=True):
    """A hook, with its request."""

    asks: HookGrants = HookGrants()


class ListedSkill(ListedSource, frozen=True, kw_only=True):
    """A skill, with the requests of its hooks."""

    hooks: dict[Line, HookGrants] = {}


class HookIndex(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    number: int = 0
    expires: Line = ""  # the last day of its validity
    hooks: dict[Line, ListedHook] = {}
    skills: dict[Line, ListedSkill] = {}

    def of(self, kind: Kind) -> Mapping[str, ListedHook | ListedSkill]:
        return self.hooks if kind == "hook" else self.skills


def read_index(data: bytes, name: str) -> HookIndex:
    """Read an index. Raises HookError if it cannot be understood."""
    try:
        index = msgspec.json.decode(data, type=HookIndex)
    except (ValueError, RecursionError) as error:
        raise HookError(f"{name} cannot be read: {to_one_line(str(error), 200)}") from None
    if index.version != INDEX_VERSION:
        raise HookError(f"{name} is of version {index.version}, and this gateway knows version {INDEX_VERSION}")
    return index


def encode_index(index: HookIndex) -> bytes:
    return msgspec.json.format(msgspec.json.encode(index, order="deterministic"), indent=2) + b"\n"


def add_listed(file: Path, found: FetchedHook | FetchedSkill, source: str, mode: int) -> HookIndex:
    """Add an entry to the index: the next number, the latest possible end, and not signed yet.

    `mode`: the mode of the file, if it is new.
    """
    is_new = not file.exists()
    before = HookIndex() if is_new else read_index(file.read_bytes(), str(file))
    end = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=VALID_DAYS)
    hooks, skills = dict(before.hooks), dict(before.skills)
    about = {"version": found.own_version, "source": source, "digest": found.digest}
    if isinstance(found, FetchedHook):
        hooks[found.name] = ListedHook(description=found.manifest.description, asks=found.grants, **about)
    else:
        asks = {hook.name: hook.grants for hook in found.hooks}
        skills[found.name] = ListedSkill(description=found.description, hooks=asks, **about)
    index = HookIndex(number=before.number + 1, expires=end.isoformat(), hooks=hooks, skills=skills)
    file.write_bytes(encode_index(index))
    if is_new:
        file.chmod(mode)
    file.with_name(f"{file.name}{SIGNATURE_ENDING}").unlink(missing_ok=True)
    return index
