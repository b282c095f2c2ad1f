"""The answers for an operator: their verbs, and the absence of any word of people, models, tools and hooks."""

import json
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import urlencode

import anyio
import msgspec
import pytest
from anyio import to_thread

from gateway.adapters.page.places import address_of
from gateway.control.server import AnswerVerb, VerbAnswer
from gateway.daemon.control_verbs import build_verbs, restrict_verb
from gateway.daemon.verb_table import VERBS
from gateway.engine.interface import NewRecord
from gateway.errors import AccessError, HookError, RoleRefused
from gateway.events.verbs import TailParams
from gateway.hooks.durable.dead_letters import make_dead_letter_put, subject_token_of
from gateway.jobs.verbs import JobAddParams
from gateway.messages.roles import ROLES, Role
from gateway.records import records, subjects
from gateway.records.activity import CALLER, PAGE_PLACE, Activity, Caller
from gateway.testing.live_gateway import LiveGateway, gateway_in
from gateway.verbs import LONGEST_SHOWN, NoParams, Verb, cut_answer
from tests.engine.memory_engine import MemoryEngine
from tests.spine import until
from tests.web.logged_in import read_login, redeem
from tests.web.visits import connect, visit

WORD = "canary"
SAID = f"my {WORD} is yellow"
LEAKY = f"""
def handle(event_type, context):
    print("{WORD} in the log")
    raise ValueError(f"{WORD} {{context}}")
"""
MANIFEST = "events: [message:received, agent:end, tool:before]\ndescription: what my canary sings\n"
TURN = {
    "user": "yellow",
    "answers": [
        {"tool_calls": [{"name": f"{WORD}_tool", "args": {WORD: [{"deep": {WORD: WORD * 100}}]}, "id": f"{WORD}-1"}]},
        {"tool_calls": [{"name": "read_file", "args": {"path": f"/{WORD}/{WORD}"}}]},
        {"text": f"A yellow {WORD}."},
    ],
}
HOOK = {"name": "leaky"}
PARAMS: dict[str, dict[str, Any]] = {
    **{f"hooks.{one}": HOOK for one in ("info", "logs", "enable", "disable", "reset", "trust", "forget", "test")},
    **dict.fromkeys(("hooks.dead_retry", "hooks.dead_prune", "events.replay"), HOOK),
    "hooks.fire": {"name": "leaky", "event": "agent:end"},
    "platform.steer": {"verb": "pause", "name": WORD},
    "platform.probe": {"name": WORD},
    "sessions.search": {"query": WORD},
    **{f"sessions.{one}": {"session": "agent:main:terminal:dm:main"} for one in ("show", "export", "stop", "delete")},
    "pairing.approve": {"code": WORD},
    "pairing.uninvite": {"number": 1},
    "pairing.revoke": {"platform": "telegram", "user_id": WORD},
    "approvals.answer": {"id": WORD, "allowed": True},
    "questions.answer": {"id": WORD, "text": WORD},
    "chat.send": {"to": "terminal", "text": WORD},
    "chat.say": {"text": WORD},
    **{name: {"person": f"net:{WORD}"} for name in ("people.show", "people.export", "people.forget")},
    "sessions.stop": {"session": WORD},
    "proposals.make": {"kind": "person", "name": f"net:{WORD}"},
    "proposals.withdraw": {"id": WORD},
    **{f"jobs.{one}": {"name": "tea"} for one in ("show", "history", "pause", "resume", "run", "remove")},
    "jobs.add": {"name": "tea", "when": "2h", "text": SAID},
    "keys.create": {"name": WORD, "role": "user"},
    "keys.revoke": {"name": WORD},
}


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveGateway]:
    """A gateway in which everything that can hold words holds the one word."""
    hooks = {"leaky": {"HOOK.yaml": MANIFEST, "handler.py": LEAKY}}
    async with gateway_in(tmp_path / "home", TURN, hooks=hooks) as live:
        await live.say(SAID)
        await live.say(f"/title my {WORD}")

        async def has_failed() -> bool:
            return (await live.gateway.folder_hooks.info("leaky")).failures > 0

        await until(has_failed, "its failure")
        emitted = records.EmittedEvent(name="agent:end", fields={"message": SAID, WORD: WORD})
        put = NewRecord(subjects.event_subject_of("agent:end"), records.encode(emitted))
        (seq,) = await live.gateway.engine.append(put)
        (record,) = await records.read_readable(live.gateway.engine, put.subject, seq - 1, 1)
        letter = make_dead_letter_put(subject_token_of("leaky"), "leaky", record, f"ValueError: {WORD}", 3)
        await live.gateway.engine.append(letter)
        yield live


async def ask(verb: VerbAnswer, role: Role, params: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Call a verb as a person of this role; notifications are returned, too."""
    CALLER.set(Caller("somebody", "elsewhere", role))
    notified: list[Any] = []

    async def note(_kind: str, told: Any) -> None:
        notified.append(told)

    said = await verb.answer(msgspec.convert(dict(params), verb.verb.params), note)
    return [said, notified]


@pytest.mark.timeout(120)
async def test_no_verb_tells_an_operator_a_word(live: LiveGateway) -> None:
    verbs = build_verbs(live.gateway.groups.find, lambda: pytest.fail("it was reloaded"))
    for name in ("jobs.add", "hooks.list", "hooks.info", "hooks.dead_letters", "sessions.list", "sessions.show"):
        assert WORD in json.dumps(await ask(verbs[name], "admin", PARAMS.get(name, {}))), name
    told: dict[str, str] = {}
    refused = set()
    for name, verb in verbs.items():
        if name == "events.tail":
            continue
        try:
            told[name] = json.dumps(await ask(verb, "operator", PARAMS.get(name, {})))
        except RoleRefused as error:
            refused.add(name)
            told[name] = str(error)
        except AccessError as error:
            told[name] = str(error)
    assert [name for name, text in told.items() if WORD in text.lower()] == []
    assert refused == {name for name, row in VERBS.items() if row.role != "operator"}
    found = (await ask(verbs["activity.list"], "owner"))[0]["activity"]
    assert {one["what"] for one in found if (one["who"], one["outcome"]) == ("somebody", "refused")} == refused


async def test_nobody_finds_a_hook_by_words_that_they_are_not_shown(live: LiveGateway) -> None:
    verb = build_verbs(live.gateway.groups.find)["hooks.list"]
    for text, role, found in (
        (WORD, "admin", ["leaky"]),
        (WORD, "operator", []),
        ("leak", "operator", ["leaky"]),
        ("leak", "admin", ["leaky"]),
    ):
        said, _ = await ask(verb, cast(Role, role), {"text": text})
        assert ([one["name"] for one in said["hooks"]], said["count"]) == (found, len(found)), (text, role)


@pytest.mark.timeout(120)
async def test_an_operator_sees_how_it_fares(live: LiveGateway) -> None:
    verbs = build_verbs(live.gateway.groups.find)
    status = (await ask(verbs["status"], "operator"))[0]
    assert (status["state"], status["journal"]["ok"], status["turns"]) == ("ready", True, {"running": 0, "waiting": 0})
    hook = (await ask(verbs["hooks.info"], "operator", HOOK))[0]
    last = hook["traces"][-1]
    assert (hook["failures"], last["event"], last["outcome"]) == (hook["calls"], hook["last_error"]["event"], "raised")
    letter = (await ask(verbs["hooks.dead_letters"], "operator"))[0]["letters"][0]
    assert (letter["hook"], letter["event"], letter["attempts"]) == ("leaky", "agent:end", 3)
    (session,) = (await ask(verbs["sessions.list"], "operator"))[0]["sessions"]
    assert (session["turns"] > 0, {"title", "first_words"} & session.keys()) == (True, set())
    assert (await ask(verbs["hooks.dead_retry"], "operator", HOOK))[0] == {"count": 1}


@pytest.mark.timeout(120)
async def test_events_are_told_an_operator_without_words(live: LiveGateway) -> None:
    verb, heard = build_verbs(live.gateway.groups.find)["events.tail"], []

    async def note(_kind: str, told: Any) -> None:
        heard.append(told)

    async def tail() -> None:
        CALLER.set(Caller("somebody", "elsewhere", "operator"))
        await verb.answer(TailParams(), note)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tail)
        await anyio.wait_all_tasks_blocked()
        live.registry.emit("a:song", platform=WORD, user_id=WORD, session_key=WORD)
        await live.say(f"/{WORD}")
        await live.say(SAID)
        await until(lambda: any(one["event"] == "agent:end" for one in heard), "the end of the turn")
        tasks.cancel_scope.cancel()
    assert {"a:song", "message:received", "tool:before", "tool:after", "llm:after"} <= {one["event"] for one in heard}
    assert [one for one in heard if WORD in json.dumps(one)] == []
    assert all(one["fields"]["session_key"] for one in heard if one["event"] == "tool:before")


@pytest.mark.timeout(120)
async def test_the_page_of_an_operator_tells_no_word(live: LiveGateway) -> None:
    assert live.gateway.web
    url = live.gateway.web.port.local_url
    link = f"{url}/open?code={await live.gateway.groups.people.logins.open_link('operator')}"
    token = read_login(await to_thread.run_sync(redeem, link))
    await ask(build_verbs(live.gateway.groups.find)["jobs.add"], "owner", {**PARAMS["jobs.add"], "when": "every 2h"})
    for name in sorted(name for name, row in VERBS.items() if isinstance(row.page, str) and row.page):
        query = urlencode(PARAMS.get(name, {}))
        answer = await to_thread.run_sync(partial(visit, url, f"/api/{name}?{query}", X_Token=token))
        is_open = VERBS[name].role == "operator"
        assert (answer.status, WORD.encode() in answer.body) == (200 if is_open else 403, False), name
    with connect(url) as line:
        at = url.partition("//")[2]
        line.sendall(f"GET /live HTTP/1.1\r\nHost: {at}\r\nX-Token: {token}\r\n\r\n".encode())
        told = await to_thread.run_sync(line.recv, 65536)
        await live.say(SAID)
        while b'"agent:end"' not in told:
            told += await to_thread.run_sync(line.recv, 65536)
    assert (b'"tool:after"' in told, WORD.encode() in told.lower()) == (True, False)


@pytest.mark.timeout(120)
async def test_a_job_of_the_page_has_the_rights_of_who_made_it(live: LiveGateway) -> None:
    add = build_verbs(live.gateway.groups.find)["jobs.add"]
    CALLER.set(Caller("web:anna", f"{PAGE_PLACE}127.0.0.1", "admin"))
    await add.answer(JobAddParams("plants", "every 2h", "water them"), _hear)
    job = (await live.gateway.groups.turns.dispatcher.jobs.find("web:anna/plants")).job
    assert (job.role, job.user_id, job.origin) == ("admin", "anna", address_of("anna"))


async def _hear(_kind: str, _told: Any) -> None:
    """Hear nothing."""


async def _answer(_params: Any, _notify: Any) -> dict[str, str]:
    return {"text": WORD}


def serve_as_it_is(verb: Verb, answer: AnswerVerb = _answer) -> VerbAnswer:
    return restrict_verb(verb, answer, Activity(MemoryEngine()), lambda said: said)


@pytest.mark.parametrize("role", ROLES)
async def test_a_verb_answers_its_role_and_those_above(role: Role) -> None:
    for needed in ROLES:
        verb = serve_as_it_is(Verb("a.song", "Sing.", NoParams, needed))
        if ROLES.index(role) <= ROLES.index(needed):
            await ask(verb, role)
        else:
            with pytest.raises(RoleRefused, match=f"for a person with the role {needed}; yours is {role}"):
                await ask(verb, role)


async def test_why_a_verb_failed_is_not_told_an_operator() -> None:
    async def fail(_params: Any, _notify: Any) -> None:
        raise HookError(WORD)

    verb = serve_as_it_is(VERBS["hooks.info"], fail)
    with pytest.raises(AccessError, match=r"^`hooks\.info` failed; an admin can see why$"):
        await ask(verb, "operator", HOOK)
    with pytest.raises(HookError, match=WORD):
        await ask(verb, "admin", HOOK)


@pytest.mark.parametrize(
    ("said", "shown", "cut"),
    [
        ({"a": 1, "b": 2}, {"a": True}, {"a": 1}),
        ({"a": {"b": WORD}}, {"a": True}, {}),
        ({"a": [{"b": 1, "c": WORD}, WORD]}, {"a": {"b": True}}, {"a": [{"b": 1}]}),
        ({"a": "x" * (LONGEST_SHOWN + 1)}, {"a": True}, {}),
        ({"a": "two\nlines"}, {"a": True}, {}),
        ({"a": [f"hook x is loaded: {WORD}"]}, {"a": "heading"}, {"a": ["hook x is loaded"]}),
        ({"a": f"{WORD} " * 90}, {"a": "heading"}, {}),
        ({"a": "ok", "b": WORD}, {"*": frozenset({"ok"})}, {"a": "ok"}),
        ({"x" * 300: 1, "y\nz": 2, "w": 3}, {"*": True}, {"w": 3}),
        ({"a": None}, {"a": True}, {}),
        ({"a": WORD}, False, None),
        (WORD, {"a": True}, None),
    ],
)
def test_what_is_not_named_is_left_out(said: Any, shown: Any, cut: Any) -> None:
    assert cut_answer(said, shown) == cut
