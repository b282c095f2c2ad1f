"""`hooks new`: a folder that works at once, with a sample event and tests; in the home or in your own repository.

`--skill` writes the skill by which an agent does the same.
"""

import argparse
import itertools
import json
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from string import Template

from gateway.cli.hooks.options import is_path
from gateway.cli.output import ask_person, print_code, print_note, show_json
from gateway.config.home import Home
from gateway.errors import HookError
from gateway.events.catalogue import (
    context_name_of,
    get_event_spec,
    list_matching_events,
    make_sample,
    suggest_event,
)
from gateway.events.fields import COMMON_FIELDS, EventSpec
from gateway.hooks.manifests.manifest import BEFORE_TOOLS
from gateway.hooks.manifests.manifest_schema import SCHEMA_FILE, build_manifest_schema
from gateway.hooks.manifests.own_guards import BEFORE_WORK
from gateway.hooks.patterns import EventSelector

MOST_CONTEXTS = 4  # classes that are named one by one
NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}\Z")
PREFERRED_FIELDS = (
    *("message", "text", "tool", "command", "content", "chunk"),
    *("response", "response_full", "message_full", "reason", "hook", "session_id"),
)
# The catalogue's types in TypeScript.
TYPESCRIPT_TYPES = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "object": "Record<string, unknown>",
    "any": "unknown",
}
PROGRAMS = {"python": "handler.py", "node": "hook.js", "typescript": "hook.ts", "sh": "hook.sh"}
TEMPLATES = Path(__file__).with_name("templates")
SCHEDULE_LINE = 'schedule: "0 9 * * *"  # minute, hour, day, month, weekday; or @hourly, or: every 15m'
WEBHOOK_LINE = "webhook: {secret_env: %s_SECRET, verify: token}  # who signs: docs/webhook-calls.md in the sources"
WITH_NODE = "      - uses: actions/setup-node@v5\n        with:\n          node-version: 24\n"  # in a workflow
SKILL = Path(".claude", "skills", "write-hook", "SKILL.md")
STARTED_BY = {
    "python": [],
    "node": ["command: [node, hook.js]", "requires: {bins: [node]}"],
    "typescript": ["command: [node, hook.ts]", "requires: {bins: [node]}"],
    "sh": ['command: ["./hook.sh"]', "protocol: oneshot"],
}


def run(args: argparse.Namespace, home: Home) -> None:
    if args.skill:
        write_skill(Path.cwd() / SKILL, args)
        return
    is_own = is_path(args.name)
    folder = Path(args.name).resolve() if is_own else home.hooks / args.name
    if not NAME_PATTERN.match(folder.name):
        raise HookError(f"{folder.name!r} is not a valid hook name\nuse small letters, digits, - and _, 61 at most")
    called = [f"{kind}:{folder.name}" for kind in ("webhook", "schedule") if getattr(args, kind)]
    events = [*args.event, *called] or ([] if args.intercept else ["agent:end"])
    check_names(events, args.intercept)
    written = render_files(folder.name, events, args.intercept, args.lang)
    if is_own:
        written = {**written, **render_repository_files(folder, args.lang)}
        write_in_repository(folder, written)
    else:
        write_in_home(home, folder, written)
    if args.json:
        show_json({"name": folder.name, "path": str(folder), "files": sorted(written)})
        return
    print(folder)
    if is_own and find_repository(folder) is None:
        what = "it is in no git repository, so no workflow for GitHub was written"
        print_note(f"{what}\nafter git init, hooks new writes one that tests it with each push")
    verb = "dev" if is_own else "test"
    print_note(f"write what it does into {PROGRAMS[args.lang]}; try it: hermes-gateway hooks {verb} {args.name}")


def write_skill(place: Path, args: argparse.Namespace) -> None:
    """Show the skill from which an agent learns to write a hook, and write it if the person agrees."""
    text = render_template("SKILL.md")
    if place.exists():
        raise HookError(f"{place} is there already\nremove it to have it written again")
    if args.json:
        show_json({"path": str(place), "text": text})
    else:
        for line in text.splitlines():
            print_code(line)
    if ask_person(f"Write {place}?", args.yes):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")


def write_in_home(home: Home, folder: Path, written: Mapping[str, str]) -> None:
    """Write the folder in one step, so that the running gateway never sees half of it."""
    if folder.exists():
        raise HookError(f"{folder} is there already\nchoose another name, or remove it")
    beside = home.hooks / f".{folder.name}.new"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for file, text in written.items():
        (beside / file).write_text(text)
        (beside / file).chmod(0o700 if file.endswith(".sh") else 0o600)
    os.rename(beside, folder)  # noqa: PTH104 - of a folder


def write_in_repository(folder: Path, written: Mapping[str, str]) -> None:
    """Write the files beside existing ones. Raises HookError if one of them would be replaced."""
    if not folder.parent.is_dir():
        raise HookError(f"folder {folder.parent} not found\nmake it first")
    places = {Path(os.path.normpath(folder / file)): text for file, text in written.items()}
    if there := [str(place) for place in places if place.exists() or place.is_symlink()]:
        raise HookError(f"{there[0]} is there already\nchoose another folder, or remove it")
    for place, text in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
        if place.suffix == ".sh":
            place.chmod(0o755)


def render_repository_files(folder: Path, lang: str) -> Mapping[str, str]:
    """Render the additional files of a shared hook, by their paths from its folder."""
    root = find_repository(folder)
    if root is None:  # GitHub reads workflows only at the top of a repository
        return {"README.md": render_template("README.md", name=folder.name, place="#FOLDER")}
    place, up = folder.relative_to(root).as_posix(), os.path.relpath(root, folder)
    subfolder = "" if place == "." else f"#{place}"
    more = WITH_NODE if lang in ("node", "typescript") else ""
    workflow = render_template("workflow.yml", name=folder.name, place=json.dumps(place), more=more)
    return {
        "README.md": render_template("README.md", name=folder.name, place=subfolder),
        f"{up}/.github/workflows/{folder.name}.yml": workflow,
    }


class FileTemplate(Template):
    """The text of a new file, with `%{name}` in the place of each value."""

    delimiter = "%"


def render_template(file: str, /, **values: str) -> str:
    """Fill in the template of this name."""
    return FileTemplate((TEMPLATES / f"{file}.template").read_text("utf-8")).substitute(values)


def find_repository(folder: Path) -> Path | None:
    """Return the top of the git repository that contains the folder."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), None)


def check_names(events: Sequence[str], intercepts: Sequence[str]) -> None:
    """Raise HookError for an unknown event, with a suggestion."""
    for name in (*events, *intercepts):
        if suggested := suggest_event(name):
            raise HookError(f"no event is called {name!r}; did you mean {suggested!r}?\nhermes-gateway events list")
    for name in intercepts:
        known = find_points(name)
        if known and not any(one.outcomes or one.writable for one in known):
            raise HookError(f"nothing of {name} can be changed or stopped\nobserve it: --event {name}")


def find_points(name: str) -> list[EventSpec]:
    """Return the catalogue's entries for the events of this subscription; none for foreign events."""
    return [known for member in list_matching_events([name]) if (known := get_event_spec(member))]


def render_files(name: str, events: Sequence[str], intercepts: Sequence[str], lang: str) -> Mapping[str, str]:
    """Render the files of a new hook, the program first."""
    heard = list_matching_events([*intercepts, *events])
    event, samples = heard[0], [*map(make_sample, heard)]
    fields = {key: value for key, value in samples[0].items() if key not in {field.name for field in COMMON_FIELDS}}
    shared = [field for field in fields if all(field in sample for sample in samples)]
    contexts = choose_contexts(heard)
    outcomes = sorted(
        {outcome.capitalize() for each in intercepts for one in find_points(each) for outcome in one.outcomes}
    )
    if intercepts and not any(map(find_points, intercepts)):
        outcomes = ["Deny", "End", "Retry"]  # a foreign event honours all
    given = {
        "name": name,
        "event": event,
        "field": choose_field(shared, list_writable(intercepts)),
        "comment": describe_answer(intercepts, outcomes, lang),
        "imports": f"\nfrom gateway.hooks import {', '.join(outcomes)}  # noqa: F401\n" if outcomes else "",
        "contexts": ", ".join(contexts),
        "context": " | ".join(contexts),
        "fields": "\n".join(list_field_types(heard)),
    }
    return {
        PROGRAMS[lang]: render_template(PROGRAMS[lang], **given),
        "HOOK.yaml": render_manifest(name, events, intercepts, lang),
        SCHEMA_FILE: json.dumps(build_manifest_schema(), separators=(",", ":"), ensure_ascii=False) + "\n",
        "sample.json": json.dumps(fields, indent=2, ensure_ascii=False) + "\n",
        f"test_{name.replace('-', '_')}.py": render_template("test.py", **given),
    }


def choose_contexts(heard: Sequence[str]) -> list[str]:
    """Return the context classes of these events; `Context` alone for foreign events, or for many."""
    specs = [get_event_spec(event) for event in heard]
    names = sorted({context_name_of(spec.name) for spec in specs if spec})
    return names if all(specs) and len(names) <= MOST_CONTEXTS else ["Context"]


def choose_field(fields: Sequence[str], writable: Collection[str]) -> str:
    """Return the field that the hook prints first: one of all its events, if possible a writable one."""
    wanted = [field for field in PREFERRED_FIELDS if field in fields]
    return next((field for field in (*wanted, *fields) if field in writable), wanted[0] if wanted else "id")


def list_writable(intercepts: Sequence[str]) -> list[str]:
    """List the fields that can be changed in all of these events."""
    found = [set(one.writable) for each in intercepts for one in find_points(each)]
    return sorted(set.intersection(*found)) if found else []


def render_manifest(name: str, events: Sequence[str], intercepts: Sequence[str], lang: str) -> str:
    lines = [f"# yaml-language-server: $schema={SCHEMA_FILE}", f"name: {name}"]
    lines += ["description: Say what this hook does, in one sentence", "version: 0.1.0"]
    called = {f"schedule:{name}": SCHEDULE_LINE, f"webhook:{name}": WEBHOOK_LINE % re.sub(r"\W", "_", name).upper()}
    observed = [each for each in events if each not in called]
    lines += [f"events: [{format_names(observed)}]"] if observed else []
    lines += [line for each, line in called.items() if each in events]
    lines += [f"intercepts: [{format_names(intercepts)}]", *describe_failure(intercepts)] if intercepts else []
    return "\n".join([*lines, *STARTED_BY[lang]]) + "\n"


def describe_failure(intercepts: Sequence[str]) -> list[str]:
    """Return the line that says what a failure means, if events differ in that."""
    selector = EventSelector(intercepts)
    if any(name in selector for name in BEFORE_TOOLS):
        return ["on_error: deny  # when it fails, what it guards does not happen"]
    return ["on_error: skip  # deny: when it fails, nothing happens"] if {*BEFORE_WORK} & {*intercepts} else []


def list_field_types(heard: Sequence[str]) -> Iterator[str]:
    """Yield the fields of the events with their types, a line each.

    A field that some of the events lack is optional. For many events, only their common fields are listed.
    """
    specs = [get_event_spec(event) for event in heard]
    known = [spec.all_fields for spec in specs if spec]
    types: dict[str, list[str]] = {}
    for field in itertools.chain(*known):
        if not field.live:
            types.setdefault(field.name, []).append(field.type)
    is_many = not all(specs) or len(specs) > MOST_CONTEXTS
    for name, kinds in types.items():
        if len(kinds) == len(specs) or not is_many:
            yield f"  {name}{'' if len(kinds) == len(specs) else '?'}: {write_type(kinds)};"
    if not all(specs):
        yield "  id: string;"
    if is_many:
        yield "  [field: string]: unknown;"


def write_type(kinds: Sequence[str]) -> str:
    """Return the TypeScript type for these types of the catalogue."""
    bare = (kind.removesuffix("?") for kind in kinds)
    types = dict.fromkeys(f"{TYPESCRIPT_TYPES[one.removesuffix('[]')]}{'[]' * one.endswith('[]')}" for one in bare)
    return " | ".join([*types, *(["null"] if any(kind.endswith("?") for kind in kinds) else [])])


def describe_answer(intercepts: Sequence[str], outcomes: Sequence[str], lang: str) -> str:
    """Describe what the answer of the hook means, and what it can change."""
    if not intercepts:
        return "It observes: what it answers counts for nothing."
    names = ", ".join(list_writable(intercepts))
    fields = f"fields ({names})" if names else "fields"
    if lang == "sh":
        refuses = describe_block(intercepts)
        return f"Exit 0 lets it pass, with changed {fields} as a JSON object on stdout if there are any{refuses}."
    if lang in ("node", "typescript"):
        words = ", ".join(f'{{decision: "{outcome.lower()}", ...}}' for outcome in outcomes)
        return f"A result of null lets it pass, an object changes {fields}{' or decides: ' + words if words else ''}."
    decide = f"; to decide, raise {' or '.join(outcomes)}" if outcomes else ""
    return f"None lets it pass; set {fields} in `context` to change them{decide}."


def describe_block(intercepts: Sequence[str]) -> str:
    """Describe the effect of exit code 2, if it has one."""
    points = [one for each in intercepts for one in find_points(each)]
    if all("deny" in one.outcomes for one in points):
        return "; 2 refuses it, for the reason on stderr"
    return "; 2 has the agent go on, for the reason on stderr" if [*intercepts] == ["agent:end"] else ""


def format_names(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' if "*" in name else name for name in names)
