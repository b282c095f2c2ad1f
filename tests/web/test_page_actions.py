"""Actions on the page: by whom, with which arguments, to what effect; and actions that are impossible there."""

import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from anyio import to_thread
from anyio.from_thread import start_blocking_portal

from gateway.daemon.answers.questions import find_persons
from gateway.daemon.verb_table import VERBS
from gateway.engine.interface import NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import ExitCode
from gateway.hooks.durable.dead_letters import dead_letter_subject_of
from gateway.messages.roles import ROLES, Role, rank_of
from gateway.records import records
from gateway.records.activity import CALLER, Caller
from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import gateway_in
from gateway.testing.networks.wire import STRANGER
from gateway.web.page_verbs import MAX_BODY
from tests.adapters.telegram_wire import TelegramWire
from tests.spine import until
from tests.web.logged_in import Browser, log_in
from tests.web.visits import Visit, send

pytestmark = pytest.mark.process

ACTS = {name: verb.page for name, verb in VERBS.items() if isinstance(verb.page, tuple)}
SECRET = "sesame-open-8823-canary"
COMMAND = "echo 'it ran'; echo '<script>alert(1)</script> \u202eback'"
RUN = {"tool_calls": [{"name": "shell", "args": {"command": COMMAND}}]}
ASKS = """
def handle(event_type, context):
    if "which" in str(context["message"]):
        return {"decision": "ask", "prompt": "Which one, left or right?", "name": "side"}
"""
PASSES = "def handle(event_type, context):\n    pass\n"
TURNS = [{"user": "run", "answers": [RUN, {"text": "it ran"}]}] * 6
FAILS = "def handle(event_type, context):\n    raise RuntimeError('no')\n"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("acts") / "home") as gateway:
        gateway.script(*TURNS, settings="tools: {shell: ask}\n")
        gateway.environ["MY_TOKEN"] = SECRET
        gateway.add_hook("watches", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": PASSES})
        gateway.add_hook("owes", {"HOOK.yaml": "events: [never:told]\ndelivery: durable\n", "handler.py": PASSES})
        gateway.add_hook("asks", {"HOOK.yaml": "intercepts: [agent:start]\n", "handler.py": ASKS})
        with start_blocking_portal() as portal:
            portal.call(bury_letters, gateway)
        gateway.start()
        gateway.until(lambda: gateway.call("hooks.info", {"name": "watches"})["state"] == "loaded")
        yield gateway


async def bury_letters(gateway: GatewayProcess) -> None:
    """Events that a hook could not be told of, in a gateway that ran before."""
    async with await open_sqlite(gateway.home.journal) as engine:
        for number in (1, 2, 3, 4):
            emitted = records.encode(records.EmittedEvent(name="never:told", fields={"id": f"e{number}"}))
            dead = records.DeadLetterRecord(what="hook:owes", reason="no", attempts=5, subject="x", seq=1, data=emitted)
            await engine.append(NewRecord(dead_letter_subject_of("owes", number), records.encode(dead)))


@pytest.fixture(scope="module")
def browser(gateway: GatewayProcess) -> Browser:
    return log_in(gateway)


def done(answer: Visit) -> Any:
    assert answer.status == 200, answer
    return json.loads(answer.body)


def acted(gateway: GatewayProcess, what: str) -> list[tuple[str, str]]:
    """Where from and on what, as the record of activity has it."""
    found = gateway.call("activity.list")["activity"]
    return [(one["place"], one["on"]) for one in found if one["what"] == what and one["outcome"] == "done"]


@pytest.mark.row("T4")
@pytest.mark.row("T15")
@pytest.mark.parametrize("verb", sorted(ACTS))
def test_nothing_is_done_without_token_and_json_from_here(gateway: GatewayProcess, browser: Browser, verb: str) -> None:
    path, body = f"/api/{verb}", json.dumps({"name": "watches"})
    token = {"X_Token": browser.token}
    assert browser.post(path, body).status == 403
    assert browser.post(path, body, X_Token="0" * 64).status == 403
    assert browser.post(f"{path}?token={browser.token}", body).status == 403
    assert browser.post(path, body, **token, Origin="http://evil.com").status == 403
    assert browser.post(path, body, **token, Origin="null").status == 403
    assert browser.post(path, body, **token, Sec_Fetch_Site="cross-site").status == 403
    assert browser.post(path, body, **token, Sec_Fetch_Site="same-site").status == 403
    assert browser.post(path, body, Cookie=f"hermes-gateway={browser.token}").status == 403
    assert browser.post(path, body, Authorization=f"Bearer {browser.token}").status == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json", ""):
        assert browser.post(path, body, kind, **token).status == 415
    assert browser.post(f"{path}?name=watches", "{}", **token).status == 400
    for odd in ("", "[]", "null", '"x"', "{", '{"name": }', "[" * 5000, "name=watches", "\ufeff{}"):
        assert browser.post(path, odd, **token).status == 400
    for odd in ("path", "__proto__", "constructor", "files", "command", "cwd", "url", SECRET):
        answer = browser.post(path, json.dumps({odd: "/bin/sh"}), **token)
        assert (answer.status, SECRET.encode() in answer.body) == (400, False)
    assert browser.post(path, json.dumps({"name": "x" * MAX_BODY}), **token).status == 413
    assert gateway.call("hooks.info", {"name": "watches"})["state"] != "disabled"


GIVEN: dict[str, dict[str, Any]] = {
    "pairing.approve": {"code": "NOBODY22"},
    "approvals.answer": {"id": "nothing", "allowed": True},
    "questions.answer": {"id": "nothing", "text": "x"},
    **{f"hooks.{one}": {"name": "nobody"} for one in ("enable", "disable", "reload", "reset")},
    **{one: {"name": "nobody"} for one in ("hooks.dead_retry", "hooks.dead_prune", "events.replay")},
    "hooks.fire": {"name": "nobody", "event": "agent:end"},
    "platform.steer": {"verb": "pause", "name": "nobody"},
    "platform.probe": {"name": "nobody"},
    "chat.send": {"to": "nobody", "text": "x"},
    **{f"sessions.{one}": {"session": "agent:main:terminal:dm:nobody"} for one in ("stop", "delete", "export")},
    "people.export": {"person": "telegram:404"},
    "jobs.add": {"name": "tea", "when": "1h", "text": "make tea"},
    **{f"jobs.{one}": {"name": "nobody"} for one in ("pause", "resume", "run", "remove")},
    "proposals.make": {"kind": "person", "name": "nobody"},
    "proposals.withdraw": {"id": "nothing"},
}


@pytest.mark.row("T10")
@pytest.mark.parametrize("role", ROLES)
async def test_a_verb_is_done_for_its_role_and_those_above(tmp_path: Path, role: Role) -> None:
    assert GIVEN.keys() == ACTS.keys() - {"reload", "restart"}  # they are of a process of its own
    async with gateway_in(tmp_path / "home") as live:
        assert live.gateway.web
        link = f"{live.gateway.web.port.local_url}/open?code={await live.gateway.groups.people.logins.open_link(role)}"
        browser = await to_thread.run_sync(Browser, link)
        for verb, given in GIVEN.items():
            is_refused = rank_of(role) < rank_of(VERBS[verb].role)
            answer = await to_thread.run_sync(partial(browser.do, verb, **given))
            assert (answer.status == 403) == is_refused, verb
            assert is_refused or answer.status in (200, 409), verb


def test_it_restarts_by_the_page_s_word(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start(environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})  # its supervisor starts it again
        browser = log_in(gateway)
        assert done(browser.do("reload")) == {"changed": [], "restart": []}
        assert done(browser.do("restart")) == {}
        assert gateway.process
        assert gateway.process.wait() == ExitCode.RESTART


@pytest.mark.row("T15")
def test_a_parameter_of_another_kind_is_refused(browser: Browser) -> None:
    odd: Any
    for odd in (None, 5, True, ["watches"], {"a": 1}):
        for verb in ("hooks.disable", "hooks.enable"):
            assert browser.do(verb, name=odd).status == 400
    for odd in ("yes", 1, None, [True]):
        assert browser.do("approvals.answer", id="x", allowed=odd).status == 400
    assert browser.do("approvals.answer", id="x", allowed=True, lasts="ever").status == 400
    assert browser.do("pairing.approve", code="x", role="guest").status == 400
    for odd in ("1", 1.5, True, [1]):
        assert browser.do("hooks.dead_prune", name="owes", id=odd).status == 400


@pytest.mark.row("T19")
@pytest.mark.parametrize("name", ["../watches", "/etc/passwd", "watches\0", "watches/../watches", "W" * 5000, "", "."])
def test_a_name_is_a_name_and_no_path(browser: Browser, name: str) -> None:
    for verb in ("hooks.disable", "hooks.enable", "hooks.dead_retry"):
        assert browser.do(verb, name=name).status == 409
    for verb in ("approvals.answer", "questions.answer"):
        more = {"allowed": True} if verb == "approvals.answer" else {"text": "x"}
        assert browser.do(verb, id=name, **more).status == 409


@pytest.mark.row("T11")
def test_no_verb_of_the_page_but_a_proposal_names_a_path_a_program_or_the_configuration() -> None:
    """What a verb takes beside these is refused, whatever it comes to take; a proposal waits for an owner elsewhere."""
    assert ACTS["proposals.make"] == ("kind", "name", "values")
    given = {name for verb, names in ACTS.items() if verb != "proposals.make" for name in names}
    answers = {"code", "role", "id", "allowed", "lasts", "digest", "text"}
    assert given == answers | {
        "name",
        "names",
        "event",
        "since",
        "verb",
        "to",
        "wait",
        "session",
        "format",
        "person",
        "when",
        "zone",
    }


def test_a_hook_is_switched_off_and_on(gateway: GatewayProcess, browser: Browser) -> None:
    assert done(browser.do("hooks.disable", name="watches"))["state"] == "disabled"
    assert gateway.call("hooks.info", {"name": "watches"})["state"] == "disabled"
    again = log_in(gateway)
    assert again.ask("hooks.info", "name=watches")["state"] == "disabled"
    done(again.do("hooks.enable", name="watches"))
    gateway.until(lambda: gateway.call("hooks.info", {"name": "watches"})["state"] == "loaded")
    for what in ("hooks.disable", "hooks.enable"):
        ((place, on),) = acted(gateway, what)
        assert (place.startswith("page 127.0.0.1"), on) == (True, "watches")
    for name in ("../../gateway", "nobody", "/etc/passwd"):
        assert browser.get(f"/api/hooks.logs?{urlencode({'name': name})}").status == 409
    refused = browser.do("hooks.enable", name="nobody")
    assert (refused.status, b"not found" in refused.body) == (409, True)


def test_a_dead_letter_is_tried_again_or_thrown_away(gateway: GatewayProcess, browser: Browser) -> None:
    one, two, *_ = (letter["number"] for letter in browser.ask("hooks.dead_letters", "name=owes")["letters"])
    assert done(browser.do("hooks.dead_prune", name="owes", id=one)) == {"count": 1}
    gone = browser.do("hooks.dead_prune", name="owes", id=one)
    assert (gone.status, b"has no dead letter" in gone.body) == (409, True)
    assert done(browser.do("hooks.dead_retry", name="owes", id=two)) == {"count": 1}
    gateway.until(lambda: gateway.call("hooks.info", {"name": "owes"})["calls"] == 1)
    assert done(browser.do("hooks.dead_prune", name="owes")) == {"count": 2}
    assert gateway.call("hooks.dead_letters") == {"letters": []}
    assert [on for _, on in acted(gateway, "hooks.dead_prune")] == [f"owes {one}", "owes"]


def waiting(browser: Browser) -> dict[str, Any]:
    (found,) = browser.ask("approvals.list")["approvals"]
    return dict(found)


def test_an_approval_is_given_as_it_was_shown_and_once(gateway: GatewayProcess, browser: Browser) -> None:
    assert gateway.say("run it", session="one")["status"] == "waiting"
    asked, other = waiting(browser), log_in(gateway)
    assert asked["calls"] == [{"tool": "shell", "args": {"command": COMMAND}}]
    shown = {one["words"]: one["text"] for one in asked["shown"]}
    assert shown["command:"] == COMMAND.replace("\u202e", "⟨U+202E⟩")
    assert any(words.startswith("For this session and Always allow") for words in shown)
    assert asked["can_last"]
    changed = browser.do("approvals.answer", id=asked["id"], allowed=True, digest="0" * 64)
    assert (changed.status, b"asks for something else now" in changed.body) == (409, True)
    assert waiting(browser) == asked | {"until": pytest.approx(asked["until"], abs=2)}
    first, second = (
        one.do("approvals.answer", id=asked["id"], allowed=True, digest=asked["digest"]) for one in (browser, other)
    )
    assert (first.status, second.status) == (200, 409)
    assert b"it was answered, or no answer came in time" in second.body
    gateway.until(lambda: "it ran" in str(gateway.call("sessions.show", {"session": "agent:main:terminal:dm:one"})))
    assert browser.ask("approvals.list") == {"approvals": [], "questions": [], "names": {}}
    ((place, on),) = acted(gateway, "approvals.answer")
    assert (place.startswith("page "), on) == (True, f"allow {asked['id']}")


def test_a_no_is_a_no(gateway: GatewayProcess, browser: Browser) -> None:
    gateway.say("run it", session="two")
    asked = waiting(browser)
    done(browser.do("approvals.answer", id=asked["id"], allowed=False, digest=asked["digest"]))
    shown = partial(gateway.call, "sessions.show", {"session": "agent:main:terminal:dm:two"})
    gateway.until(lambda: "did not allow shell to run" in str(shown()))


def test_an_approval_may_last_for_whoever_wants_it(gateway: GatewayProcess, browser: Browser) -> None:
    gateway.say("run it", session="three")
    asked = waiting(browser)
    done(browser.do("approvals.answer", id=asked["id"], allowed=True, lasts="session", digest=asked["digest"]))
    gateway.until(lambda: "(session)" in gateway.say("/approvals", session="three")["reply"])
    assert gateway.say("run it", session="three")["reply"] == "it ran"


def test_a_question_is_answered_in_words(gateway: GatewayProcess, browser: Browser) -> None:
    assert gateway.say("which way?", session="four")["status"] == "waiting"
    (asked,) = browser.ask("approvals.list")["questions"]
    assert asked["shown"] == [{"words": "A question:", "text": "Which one, left or right?"}]
    answer = partial(browser.do, "questions.answer", id=asked["id"])
    assert answer(text="  ", digest=asked["digest"]).status == 409
    assert answer(text="left", digest="1" * 64).status == 409
    assert done(answer(text="left", digest=asked["digest"]))["id"] == asked["id"]
    assert answer(text="left", digest=asked["digest"]).status == 409
    gateway.until(lambda: browser.ask("approvals.list")["questions"] == [])


@pytest.fixture
async def asked_in(tmp_path: Path) -> AsyncIterator[tuple[GatewayProcess, TelegramWire]]:
    """Somebody whom nobody knows has written, and was told a code."""
    wire = TelegramWire()
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.environ |= wire.environ
            gateway.script({"user": "", "text": "Hello."})
            await to_thread.run_sync(gateway.start)
            await wire.write("let me in", by=STRANGER)
            await until(lambda: any("hermes-gateway pairing approve" in one.text for one in wire.shown), "the code")
            yield gateway, wire


@pytest.mark.row("T18")
async def test_somebody_is_let_in_but_nobody_becomes_an_owner(
    asked_in: tuple[GatewayProcess, TelegramWire],
) -> None:
    gateway, wire = asked_in
    browser = await to_thread.run_sync(log_in, gateway)
    (asks,) = (await to_thread.run_sync(browser.ask, "pairing.list"))["asking"]
    assert "mark" not in asks

    async def approve(code: str, role: str = "user") -> Visit:
        return await to_thread.run_sync(partial(browser.do, "pairing.approve", code=code, role=role))

    owner = await approve(f"#{asks['number']}", "owner")
    assert (owner.status, b"an owner is made where the gateway runs" in owner.body) == (409, True)
    wrong = [await approve("WRONGONE") for _ in range(6)]
    assert {one.status for one in wrong} == {409}
    assert b"too many wrong codes" in wrong[-1].body
    assert done(await approve(f"#{asks['number']}"))["role"] == "user"
    await until(lambda: any("You can use this bot now" in one.text for one in wire.shown), "the word of it")
    assert (await to_thread.run_sync(browser.ask, "pairing.list"))["asking"] == []
    host = await to_thread.run_sync(gateway.cli, "pairing", "approve", "NOBODY22")
    assert "the code was not found" in host.stderr, "wrong tries on the page cost the terminal none"


def test_a_request_that_is_no_page_s_is_refused_first(gateway: GatewayProcess) -> None:
    url = str(gateway.call("status")["web"]["url"])
    assert send(url, "/api/hooks.disable", "POST", b'{"name": "watches"}').status == 403


@pytest.mark.row("T19")
def test_a_verb_has_one_spelling(gateway: GatewayProcess, browser: Browser) -> None:
    for path in (
        "hooks%2Edisable",
        "hooks.disable/",
        "/hooks.disable",
        "hooks.disable%00",
        "hooks.disable;x",
        "Hooks.Disable",
    ):
        answer = browser.post(f"/api/{path}", '{"name": "watches"}', X_Token=browser.token)
        assert answer.status in (404, 405), path
    for path in ("/API/hooks.disable", "//api/hooks.disable", "/x/../api/hooks.disable", "/api/../api/hooks.disable"):
        assert browser.post(path, '{"name": "watches"}', X_Token=browser.token).status in (404, 405), path
    assert gateway.call("hooks.info", {"name": "watches"})["state"] != "disabled"


@pytest.mark.parametrize(
    ("caller", "persons"),
    [
        ("me", (("terminal", "owner"), ("web", "owner"))),
        ("login 0a1b2c3d", (("terminal", "owner"), ("web", "owner"))),
        ("web:ann", (("web", "ann"),)),
        ("web:telegram:1001", (("telegram", "1001"), ("web", "telegram:1001"))),
    ],
)
def test_whoever_answers_is_the_person_whom_chats_know(caller: str, persons: tuple[tuple[str, str], ...]) -> None:
    kept = CALLER.set(Caller(caller, "page 127.0.0.1", "owner"))
    assert find_persons() == persons
    CALLER.reset(kept)
