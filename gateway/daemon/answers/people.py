"""Answers about people: a list, the data about a person, their archive, and their removal."""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gateway.access.access_control import API
from gateway.adapters.page.places import PLATFORM
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base
from gateway.daemon.groups.storage import Storage
from gateway.errors import AccessError
from gateway.messages.roles import rank_of
from gateway.people.leftovers import list_leftovers
from gateway.people.person import Person, parse_person
from gateway.people.removal import PersonRemoval
from gateway.people.traces import PersonTraces, pick_turns
from gateway.people.verbs import PeopleListParams, PeopleOrder, PersonParams
from gateway.questions.proposals import DESK
from gateway.records.activity import CALLER, OWNER
from gateway.records.names import fold_name
from gateway.records.records import ProgramKey
from gateway.sessions.export import as_json
from gateway.sessions.search import Speaker
from gateway.sessions.session import Session
from gateway.threads import run_in_thread
from gateway.verbs import Notify
from gateway.web.program_keys import ProgramKeys

PIECE = 200_000  # characters of an archive in one notification


def _traces_of(base: Base, storage: Storage) -> PersonTraces:
    found, kept = (storage.sessions, storage.search, storage.memory), (storage.files, storage.folders)
    return PersonTraces(base.engine, *found, base.home.files, *kept)


async def people_list(base: Base, storage: Storage, people: People, params: PeopleListParams) -> Any:
    speakers = await _traces_of(base, storage).list_speakers()
    paired = {Person(one.platform, one.user_id): one.user_name for one in people.access.pairings.people}
    known = {*speakers, *paired, *_list_named(base, people)}
    rows = [_describe_person(people, one, paired.get(one, ""), speakers.get(one)) for one in known]
    rows = [row for row in rows if _is_meant(row, params)]
    if params.role or params.sort == "role":  # otherwise, only the rows of this page need roles
        rows = [row for row in _with_roles(people, rows) if params.role in ("", row["role"] or "none")]
    rows.sort(key=PEOPLE_ORDERS[params.sort])
    end = len(rows) if params.limit < 0 else params.first + params.limit
    return {"people": _with_roles(people, rows[params.first : end]), "count": len(rows)}


def _list_named(base: Base, people: People) -> Iterator[Person]:
    """Yield the people whom the configuration names."""
    rules = people.access.rules
    for platform in {*rules.owners, *rules.admins, *rules.users, *rules.group_users}:
        yield from (Person(platform, user) for user in rules.list_people(platform))
    yield from (parse_person(one) for group in base.settings.access.groups.values() for one in group.people)


def _describe_person(people: People, person: Person, paired: str, said: Speaker | None) -> dict[str, Any]:
    name, names = str(person), people.names.people
    facts = {"person": name, "name": names.find(name) or paired, "is_shared": names.is_shared(name)}
    return {**facts, "sessions": said.sessions if said else 0, "last_active": said.last_active if said else 0.0}


def _is_meant(row: Mapping[str, Any], params: PeopleListParams) -> bool:
    if params.platform not in ("", row["person"].partition(":")[0]):
        return False
    return fold_name(params.search) in fold_name(row["name"]) or params.search.casefold() in row["person"].casefold()


def _with_roles(people: People, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row if "role" in row else {**row, "role": _role_of(people, parse_person(row["person"]))} for row in rows]


PEOPLE_ORDERS: Mapping[PeopleOrder, Callable[[Mapping[str, Any]], Any]] = {
    "name": lambda row: (not row["name"], fold_name(row["name"]), row["person"]),
    "id": lambda row: row["person"],
    "latest": lambda row: (-row["last_active"], row["person"]),
    "sessions": lambda row: (-row["sessions"], row["person"]),
    "role": lambda row: (-rank_of(row["role"]) if row["role"] else 0, fold_name(row["name"]), row["person"]),
}


def _role_of(people: People, person: Person) -> str:
    """Return the person's role in a direct chat; "" if the person is not authorized."""
    return people.access.find_highest_role(*person) or ""


async def people_show(base: Base, storage: Storage, people: People, params: PersonParams) -> Any:
    person, traces = parse_person(params.person), _traces_of(base, storage)
    await people.heard.flush()
    found = await traces.find_conversations(person)
    kinds: dict[str, int] = {}
    async for _, kept in traces.read_records(person):
        kind = type(kept).__struct_config__.tag
        kinds[str(kind)] = kinds.get(str(kind), 0) + 1
    paths = await traces.fetch_files(person)
    paired = [one.at for one in people.access.pairings.people if Person(one.platform, one.user_id) == person]
    return {
        "person": str(person),
        "name": people.names.people.find(str(person)),
        "is_shared": people.names.people.is_shared(str(person)),
        "role": _role_of(people, person),
        "settings": people.access.rules.list_settings(str(person)),
        "paired": max(paired, default=0.0),
        "conversations": found.own,
        "shared": found.shared,
        "unclear": found.unclear,
        "records": kinds,
        "notes": len(await traces.memory.recall(str(person), "")),
        "files": len(paths),
        "bytes": sum(path.stat().st_size for path in paths),
    }


async def people_forget(base: Base, storage: Storage, people: People, params: PersonParams) -> Any:
    person = parse_person(params.person)
    role = people.access.find_highest_role(*person)
    if role and rank_of(role) > rank_of(CALLER.get(OWNER).role):
        raise AccessError(f"{person} is an {role}: you cannot forget a person with a higher role than yours")
    remover = PersonRemoval(
        _traces_of(base, storage), people.access.pairings, storage.activity, people.usage, base.home.unreadable
    )
    await people.heard.forget(str(person))
    await people.names.forget(str(person))
    gone = await remover.forget(person)
    await people.tell_forgotten(gone.pseudonym)
    await people.chats.kept.load()  # the settings of their direct chats are gone
    for login in people.logins.logins:
        if login.person == str(person) or person == (PLATFORM, login.person):
            await people.logins.end(login)
    base.registry.emit("person:forgotten", platform=person.platform, user_id=person.user_id, pseudonym=gone.pseudonym)
    left = await run_in_thread(list_leftovers, base.home, person)
    if (twin := Person(PLATFORM, str(person))) in await _traces_of(base, storage).list_speakers():
        left.append(f"{twin}: who they are on the page, by a link: hermes-gateway people forget {twin}")
    if key := _find_key(people.keys, person):
        left.append(f"the key {key.name}: its program may speak for them again: hermes-gateway keys revoke {key.name}")
    return {**msgspec.structs.asdict(gone), "left": left}


def _find_key(keys: ProgramKeys, person: Person) -> ProgramKey | None:
    """Return the API key whose program may come back as this person."""
    if person.platform == API:
        return keys.find_speaker(person.user_id)
    of_desks = (one for one in keys.keys if one.role == "desk" and person == (DESK, one.name))
    return next(of_desks, None)


async def people_export(base: Base, storage: Storage, people: People, params: PersonParams, notify: Notify) -> Any:
    """Send the archive in pieces to the command that packs it: texts in full, files as paths."""
    person, traces = parse_person(params.person), _traces_of(base, storage)
    count = 0
    async for name, text in _write_archive(base, storage, people, traces, person):
        count += 1
        for at in range(0, max(len(text), 1), PIECE):
            await notify("piece", {"name": name, "text": text[at : at + PIECE]})
    for path in await traces.fetch_files(person):
        count += 1
        name = f"files/{archive_name_of(path, traces.find_folders(person))}"
        await notify("file", {"name": name, "path": str(path)})
    return {"person": str(person), "parts": count}


async def _write_archive(
    base: Base, storage: Storage, people: People, traces: PersonTraces, person: Person
) -> AsyncIterator[tuple[str, str]]:
    facts = await people_show(base, storage, people, PersonParams(str(person)))
    yield "person.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    for key in (*facts["conversations"], *facts["shared"]):
        for session in await traces.read_sessions(key):
            theirs = session if key in facts["conversations"] else pick_turns(session, person)
            if theirs.entries:
                yield f"sessions/{session.session_id}.json", as_json(_without_others(theirs, person))
    found = traces.read_records(person)
    rows = [msgspec.json.encode({"seq": record.seq, "record": kept}).decode() async for record, kept in found]
    yield "records.jsonl", "".join(f"{row}\n" for row in rows)
    notes = await traces.memory.recall(str(person), "")
    yield "memory.json", json.dumps(list(notes), indent=2, ensure_ascii=False) + "\n"


def archive_name_of(path: Path, folders: Sequence[Path]) -> str:
    """Return the name of a file in the archive; the files of a named bot are below the name of that bot."""
    folder = next(one for one in folders if path.is_relative_to(one))
    within = "" if folder == folders[0] else f"{folder.parent.name}/"
    return f"{within}{path.relative_to(folder)}"


def _without_others(session: Session, person: Person) -> Session:
    """Remove the id of the person who began the conversation, if that is another person."""
    return session if person.user_id == session.user_id else msgspec.structs.replace(session, user_id="")
