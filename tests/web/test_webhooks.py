"""The webhooks of the running gateway: accepted callers, the results of a call, and facts that stay hidden."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.testing import GatewayProcess
from gateway.web.request_body import MOST_UNASKED, RequestBody, WebRefusal
from gateway.web.webhooks.receiver import MOST_LARGE, MOST_SMALL, BodyPlaces
from tests.web.signers import SECRETS, SIGN, TOKEN, body_of, sign_github, sign_standard, sign_token
from tests.web.visits import Visit, connect, read_all, read_answer, visit

pytestmark = pytest.mark.process

CONFIG = """
web: {trusted_proxies: [127.0.0.1]}
agents: {main: {}, scribe: {instructions: I write.}}
webhooks:
  github: {secret_env: GITHUB_SECRET, verify: github, rate: 10000}
  stripe: {secret_env: STRIPE_SECRET, verify: stripe}
  slack: {secret_env: SLACK_SECRET, verify: slack}
  standard: {secret_env: STANDARD_SECRET, verify: standard}
  token: {secret_env: TOKEN_SECRET, verify: token, rate: 10000}
  weak: {secret_env: BUILDS, verify: token}
  unset: {secret_env: NOBODY_SET_THIS, verify: github}
  blank: {secret_env: BLANK_SECRET, verify: token}
  seldom: {secret_env: TOKEN_SECRET, verify: token, rate: 2}
  small: {secret_env: TOKEN_SECRET, verify: token, max_size: 1000}
  large: {secret_env: TOKEN_SECRET, verify: token, max_size: 2000000}
"""
NOTE = """
import json, os

FILE = os.open({file!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

def handle(name, context):
    large = ("text", "body") if len(context["text"]) > 1000 else ("text",)
    fields = {{key: context[key] for key in context if key not in large}}
    os.write(FILE, json.dumps({{"name": name, "length": len(context["text"]), **fields}}).encode() + b"\\n")
"""


PEERS = count(500)


def add_notes(gateway: GatewayProcess, manifest: str) -> None:
    """A hook that writes down what it is told."""
    source = NOTE.format(file=str(gateway.home.root.parent / "notes"))
    gateway.add_hook("notes", {"HOOK.yaml": manifest, "handler.py": source})


def read_notes(gateway: GatewayProcess) -> list[dict[str, Any]]:
    file = gateway.home.root.parent / "notes"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def write_secrets(gateway: GatewayProcess, **others: str) -> None:
    named = {f"{signer.upper()}_SECRET": secret for signer, secret in SECRETS.items()} | {"BLANK_SECRET": "  "} | others
    gateway.home.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    gateway.home.env.write_text("".join(f'{name}="{value}"\n' for name, value in named.items()))
    gateway.home.env.chmod(0o600)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("webhooks") / "home") as gateway:
        gateway.configure(CONFIG)
        write_secrets(gateway)
        gateway.environ["BUILDS"] = "abacus77"
        add_notes(gateway, "events: ['webhook:*']\ndelivery: durable\n")
        gateway.start()
        gateway.until(lambda: "loaded" in gateway.call("status")["hooks"])
        yield gateway


def told_of(gateway: GatewayProcess, name: str) -> dict[str, Any]:
    """What the hook was told of this call, once."""

    def find() -> list[dict[str, Any]]:
        return [one for one in read_notes(gateway) if one["delivery_id"] == name]

    gateway.until(lambda: bool(find()))
    (one,) = find()
    return one


def url_of(gateway: GatewayProcess) -> str:
    return str(gateway.call("status")["web"]["url"])


def post(gateway: GatewayProcess, name: str, body: bytes, headers: dict[str, str], path: str = "/webhooks/") -> Visit:
    """Each from another address, unless the headers say from which: wrong ones are counted by it."""
    at = url_of(gateway).removeprefix("http://")
    peer = f"10.0.{next(PEERS) // 250}.{next(PEERS) % 250}"
    with_length = {"Host": at, "Content-Length": str(len(body)), "X-Forwarded-For": peer, **headers}
    lines = [f"POST {path}{name} HTTP/1.1", *(f"{key}: {value}" for key, value in with_length.items())]
    with connect(f"http://{at}") as client:
        client.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        return read_answer(read_all(client))


@pytest.mark.parametrize("signer", SIGN)
def test_what_each_sender_signs_is_told_to_a_hook_once(gateway: GatewayProcess, signer: str) -> None:
    name = f"{signer}-first"
    body = body_of(name, action="opened", event={"type": "message"})
    answer = post(gateway, signer, body, SIGN[signer](body, name=name))
    assert (answer.status, json.loads(answer.body)) == (202, {"id": name, "known": False})
    again = post(gateway, signer, body, SIGN[signer](body, name=name))
    assert (again.status, json.loads(again.body)) == (202, {"id": name, "known": True})
    told = told_of(gateway, name)
    kinds = {"github": "issues.opened", "slack": "thing.done.message"}
    assert (told["name"], told["webhook"], told["kind"]) == (
        f"webhook:{signer}",
        signer,
        kinds.get(signer, "thing.done"),
    )
    assert (told["body"]["id"], told["length"], told["role"]) == (name, len(body), "guest")
    assert told["id"] == f"webhook:{signer}:{name}"
    assert not {"authorization", "x-gitlab-token"} & set(told["headers"])
    assert not any(secret in json.dumps(told["headers"]) for secret in SECRETS.values())


@pytest.mark.row("T7")
def test_a_get_is_refused_and_costs_nothing(gateway: GatewayProcess) -> None:
    url = url_of(gateway)
    for _ in range(30):
        for name in ("seldom", "nobody"):
            answer = visit(url, f"/webhooks/{name}", X_Forwarded_For="10.9.9.9", X_Gitlab_Token=TOKEN)
            assert (answer.status, answer.headers["allow"]) == (405, "POST")
    wrong = post(gateway, "seldom", b"{}", sign_token(b"{}", secret="wrong") | {"X-Forwarded-For": "::ffff:10.9.9.9"})
    assert wrong.status == 401, "no GET was counted, neither as wrong nor as a call"
    assert post(gateway, "seldom", b"{}", sign_token(b"{}")).status == 202


@pytest.mark.row("T6")
@pytest.mark.row("T7")
def test_guessing_is_slowed_and_the_right_one_still_counts(gateway: GatewayProcess) -> None:
    peers = ("10.8.8.8", "::ffff:10.8.8.8")
    answers = [
        post(gateway, name, b"{}", sign_token(b"{}", secret=f"wrong{at}") | {"X-Forwarded-For": peers[at % 2]})
        for at, name in enumerate(["token", "nobody"] * 7)
    ]
    assert [answer.status for answer in answers] == [401] * 10 + [429] * 4
    assert 0 < int(answers[-1].headers["retry-after"]) <= 60
    assert post(gateway, "token", b"{}", sign_token(b"{}") | {"X-Forwarded-For": peers[0]}).status == 202


@pytest.mark.row("T12")
def test_who_shows_nothing_is_refused_before_a_byte_of_the_body_is_read(gateway: GatewayProcess) -> None:
    host = url_of(gateway).removeprefix("http://")
    lines = "POST /webhooks/github HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{}\r\n"
    for length in ("Content-Length: 900000\r\nExpect: 100-continue\r\n", "Transfer-Encoding: chunked\r\n"):
        with connect(f"http://{host}") as client:
            client.sendall(lines.format(host, length + "X-Forwarded-For: 10.7.7.7\r\n").encode())
            assert read_answer(read_all(client)).status == 401, "it answers, and asks for no body"


@pytest.mark.row("T12")
def test_a_body_that_is_too_large_is_cut_however_it_comes(gateway: GatewayProcess) -> None:
    host = url_of(gateway).removeprefix("http://")
    head = f"POST /webhooks/github HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    head += "X-Hub-Signature-256: sha256=00\r\nX-Forwarded-For: 10.7.7.6\r\n"
    with connect(f"http://{host}") as client:
        client.sendall(f"{head}Content-Length: 2000001\r\n\r\n".encode())
        assert read_answer(read_all(client)).status == 413, "by what it says, before it comes"
    with connect(f"http://{host}") as client:
        client.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        with suppress(ConnectionError):
            while True:  # until the line is closed on whoever does not stop
                client.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
    body = body_of("too-large", text="x" * 1000)
    assert post(gateway, "small", body, sign_token(body)).status == 413
    assert post(gateway, "large", body_of("large", text="x" * 1_900_000), sign_token(b"", name="large")).status == 202
    assert told_of(gateway, "large")["length"] > 1_900_000


@pytest.mark.row("T12")
def test_without_a_secret_it_is_off_and_said_so(gateway: GatewayProcess) -> None:
    for name, headers in (
        ("unset", sign_github(b"{}", secret="")),
        ("blank", sign_token(b"{}", secret="  ")),
        ("blank", sign_token(b"{}", secret="")),
        ("blank", {"Content-Type": "application/json"}),
    ):
        assert post(gateway, name, b"{}", headers).status == 401
    attention = "\n".join(gateway.call("status")["attention"])
    assert "webhook unset cannot be called: NOBODY_SET_THIS is not set; write it into .env" in attention
    assert "webhook blank cannot be called: BLANK_SECRET is blank; write it into .env" in attention
    doctor = gateway.cli("doctor")
    assert (doctor.returncode, "webhook unset cannot be called" in doctor.stdout) == (1, True)
    shown = gateway.cli("status", "--parts").stdout
    assert f"called by POST {url_of(gateway)}/webhooks/WEBHOOK" in shown


@pytest.mark.row("T13")
def test_a_replay_is_known_however_it_is_written(gateway: GatewayProcess) -> None:
    body = body_of("r", action="replayed")
    headers = sign_github(body, name="replay-1")
    assert json.loads(post(gateway, "github", body, headers).body)["known"] is False
    written = headers["X-Hub-Signature-256"]
    for changed in (
        {"X-GitHub-Delivery": "replay-2"},
        {"X-GitHub-Delivery": "replay-3", "X-Hub-Signature-256": f"sha256={written[7:].upper()}"},
        {"X-GitHub-Delivery": "", "User-Agent": "another"},
    ):
        again = post(gateway, "github", body, headers | changed)
        assert (again.status, json.loads(again.body)["known"]) == (202, True)
    late = sign_standard(body, at=1_700_000_000)
    assert post(gateway, "standard", body, late).status == 401
    told_of(gateway, "replay-1")
    assert [one["delivery_id"] for one in read_notes(gateway) if one["kind"] == "issues.replayed"] == ["replay-1"]


@pytest.mark.row("T14")
def test_an_address_with_a_query_is_refused_whatever_its_name(gateway: GatewayProcess) -> None:
    for name in ("token", "nobody"):
        for query in (f"?token={TOKEN}", "?session=agent:main:terminal:dm:main"):
            assert post(gateway, name + query, b"{}", sign_token(b"{}")).status == 400


@pytest.mark.row("T14")
def test_a_name_that_is_not_there_and_a_wrong_secret_look_alike(gateway: GatewayProcess) -> None:
    def look(name: str, headers: dict[str, str], body: bytes = b'{"a": 1}') -> tuple[int, bytes, dict[str, str]]:
        status, shown, found = post(gateway, name, body, {"Content-Type": "application/json"} | headers)
        return status, found, {key: value for key, value in shown.items() if key != "date"}

    wrong = {signer: SIGN[signer](b'{"a": 1}', secret=f"whsec_{'AAAA' * 8}") for signer in SIGN}
    for shown in (*wrong.values(), {}, {"X-Hub-Signature-256": "?"}, {"Content-Type": "text/plain"}):
        wanted = look("nobody", shown)
        names = ("github", "stripe", "standard", "token", "unset", "..%2fopen", "a/b", "", "GITHUB", "github/")
        assert [look(name, shown) for name in names] == [wanted] * len(names)
    assert post(gateway, "", b"{}", wrong["github"], path="/webhooks").status == 401


@pytest.mark.thorough  # a ratio of times
@pytest.mark.row("T14")
def test_a_name_that_is_not_there_takes_as_long_as_a_wrong_secret(gateway: GatewayProcess) -> None:
    """Long enough that whoever did not compare the signature would answer in a third of the time."""
    body = body_of("slow", text="x" * 900_000)
    took: dict[str, list[float]] = {"nobody": [], "unset": [], "github": [], "stripe": [], "token": []}
    for _ in range(20):
        for name, times in took.items():
            begun = time.perf_counter()
            assert post(gateway, name, body, sign_github(body, secret="wrong")).status == 401
            times.append(time.perf_counter() - begun)
    fastest = {name: min(times) for name, times in took.items()}
    assert max(fastest.values()) < 2 * min(fastest.values()), fastest


@pytest.mark.row("T15")
@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/octet-stream",
        "application/json; charset=latin-1",
        "text/json",
        "application/jsonx",
    ],
)
def test_another_type_of_content_is_refused(gateway: GatewayProcess, kind: str) -> None:
    body = b'{"a": 1}'
    for name in ("token", "nobody"):
        assert post(gateway, name, body, sign_token(body) | {"Content-Type": kind}).status == 415
    packed = {"Content-Encoding": "gzip"}
    assert post(gateway, "token", body, sign_token(body) | packed).status == 415


@pytest.mark.row("T15")
def test_what_is_not_what_its_type_says_is_refused_and_a_form_is_read(gateway: GatewayProcess) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in (b"{", b"[1,]", b"\xff", b"[" * 100_000, b"1e999", b'{"a": "\xed\xa0\x80"}'):
        assert post(gateway, "token", body, sign_token(body)).status == 400, body[:20]
    for body, read in (
        (b"a=1&a=2&b=%20x&c=", {"a": ["1", "2"], "b": " x", "c": ""}),
        (b"payload=%7B%22action%22%3A+%22opened%22%7D", {"action": "opened"}),
    ):
        name = f"form-{len(body)}"
        assert post(gateway, "token", body, sign_token(body, name=name) | form).status == 202
        assert told_of(gateway, name)["body"] == read


def test_who_calls_too_often_is_told_when_to_come_again(gateway: GatewayProcess) -> None:
    answers = [post(gateway, "seldom", b"{}", sign_token(b"{}")) for _ in range(4)]
    assert answers[-1].status == 429
    assert 0 < int(answers[-1].headers["retry-after"]) <= 60
    assert post(gateway, "token", b"{}", sign_token(b"{}")).status == 202


def test_slack_hears_its_challenge_and_nobody_else_does(gateway: GatewayProcess) -> None:
    body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"})
    answer = post(gateway, "slack", body.encode(), SIGN["slack"](body.encode()))
    assert (answer.status, answer.body) == (200, json.loads(body)["challenge"].encode())
    assert post(gateway, "slack", body.encode(), SIGN["slack"](body.encode(), secret="another")).status == 401


@pytest.mark.row("T9")
def test_a_secret_that_was_changed_is_dead_at_once(gateway: GatewayProcess) -> None:
    body = body_of("rotated")
    assert post(gateway, "github", body, sign_github(body, name="before")).status == 202
    try:
        write_secrets(gateway, GITHUB_SECRET="a new one, after the old one was seen")
        assert gateway.cli("reload").returncode == 0
        other = body_of("rotated again")
        assert post(gateway, "github", other, sign_github(other, name="old")).status == 401
        signed = sign_github(other, name="new", secret="a new one, after the old one was seen")
        assert post(gateway, "github", other, signed).status == 202
    finally:
        write_secrets(gateway)
        assert gateway.cli("reload").returncode == 0


@pytest.mark.row("T8")
def test_a_secret_that_can_be_guessed_is_warned_of_and_never_shown(gateway: GatewayProcess) -> None:
    answer = post(gateway, "weak", b"{}", sign_token(b"{}", secret="abacus77"))
    assert answer.status == 202
    shown = gateway.call("status")
    assert "webhook weak: BUILDS has fewer than 16 characters, and can be guessed" in shown["notices"]


@pytest.mark.row("T28")
def test_no_secret_is_in_the_journal_or_the_log(gateway: GatewayProcess) -> None:
    shown = gateway.cli("status", "--json").stdout + gateway.cli("logs", "--json").stdout
    journal = b"".join(path.read_bytes() for path in gateway.home.own_folder.glob("journal.db*"))
    for secret in SECRETS.values():
        assert secret not in shown
        assert secret.encode() not in journal


def test_doctor_names_what_is_missing_before_it_runs_and_what_is_wrong_is_said_with_its_place(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("webhooks:\n  a: {secret_env: NOBODY_SET_THIS, verify: github}\n")
        said = gateway.cli("doctor").stdout
        assert "config.yaml:2:19: the webhook a is off: NOBODY_SET_THIS is not set" in " ".join(said.split())
        gateway.configure(
            "webhooks:\n"
            "  a b: {secret_env: X, verify: token}\n"
            "  b: {secret_env: X, verify: hub}\n"
            "  c: {secret_env: X, verify: token, session: home}\n"
            "  d: {secret_env: X, verify: token, template: 'a {b!r}', as: owner}\n"
            "  e: {secret_env: X, verify: token, template: 'a {b!r}', agent: nobody}\n"
            "  f: {secret_env: 'a secret', verify: token}\n"
            "  g: {verify: token}\n"
        )
        said = gateway.cli("config", "check").stdout
        for wanted in (
            "3:30: error: `webhooks.b.verify` cannot have this value",
            "5:62: error: `webhooks.d.as` cannot have this value; write `guest` or `user`",
            "7:19: error: `webhooks.f.secret_env`",
            "8:6: error: `webhooks.g.secret_env` is missing",
        ):
            assert wanted in said
        gateway.configure(
            "webhooks:\n"
            "  a b: {secret_env: X, verify: token}\n"
            "  c: {secret_env: X, verify: token, session: home}\n"
            "  e: {secret_env: X, verify: token, template: 'a {b!r}', agent: nobody}\n"
        )
        said = gateway.cli("config", "check").stdout
        for wanted in (
            "2:8: error: `webhooks` has the name `a b`, which cannot be part of an address",
            "3:46: error: `webhooks.c.session` means nothing without `template`",
            "4:47: error: `webhooks.e.template` has `{b!r}` in its line 1, at 3, which is not a path",
            "4:65: error: `webhooks.e.agent` names what is not there",
        ):
            assert wanted in said


@pytest.mark.row("T12")
async def test_slow_bodies_leave_places_to_others_and_the_one_of_which_least_came_gives_way() -> None:
    places, ended = BodyPlaces(), list[tuple[str, HTTPStatus]]()

    async def send_slowly(name: str, peer: str, length: int, came: int = 0) -> None:
        body = RequestBody(length)
        body.feed(b"x" * came)
        try:
            async with places.hold(peer, body):
                await anyio.sleep_forever()
        except WebRefusal as refusal:
            ended.append((name, refusal.status))

    async with anyio.create_task_group() as tasks:
        for kind, length, most in (("small", 1000, MOST_SMALL), ("large", MOST_UNASKED + 1, MOST_LARGE)):
            ended.clear()
            for at in range(most):
                came = 500 if at == 0 else 2 if at == 1 else 1
                tasks.start_soon(send_slowly, f"{kind} {at}", "10.0.0.1", length, came)
                await anyio.wait_all_tasks_blocked()
            for peer in ("10.0.0.1", "10.0.0.2"):
                async with places.hold(peer, RequestBody(length)):
                    await anyio.wait_all_tasks_blocked()
                assert ended == [(f"{kind} 2", HTTPStatus.SERVICE_UNAVAILABLE)], "and its place is free then"
        tasks.cancel_scope.cancel()


@pytest.mark.row("T12")
def test_a_signed_body_that_came_in_half_is_taken_beside_slow_ones_of_its_address(gateway: GatewayProcess) -> None:
    url, body = url_of(gateway), body_of("half", text="x" * 2000)
    with ExitStack() as clients:

        def send(headers: dict[str, str], part: bytes) -> socket.socket:
            shown = headers | {"Host": url.removeprefix("http://"), "X-Forwarded-For": "10.9.9.9"}
            lines = [f"{key}: {value}" for key, value in (shown | {"Content-Length": str(len(body))}).items()]
            client = clients.enter_context(connect(url))
            client.sendall("\r\n".join(["POST /webhooks/github HTTP/1.1", *lines, "", ""]).encode() + part)
            return client

        signed = send(sign_github(body), body[:1000])
        slow = [send(sign_github(body, secret="wrong"), b"x") for _ in range(MOST_SMALL + 10)]
        assert read_answer(read_all(slow[0])).status == HTTPStatus.SERVICE_UNAVAILABLE
        signed.sendall(body[1000:])
        assert read_answer(read_all(signed)).status == HTTPStatus.ACCEPTED
