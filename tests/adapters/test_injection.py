"""A model that does what it reads, behind the networks: what would act is asked of an owner, with the truth, or is not.

Everything is read at once, each by a person of its own, so that no network slows us down.
"""

import re
from collections.abc import Iterator, Mapping
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from anyio import to_thread

from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, Shown, Wire
from tests.adapters.discord_facts import CHANNEL, TEAM_ROLE
from tests.adapters.test_questions import read_back
from tests.adapters.wires import WIRES
from tests.daemon.obedient import serving_obedient_model
from tests.daemon.test_injection import ASKS, NOTHING, SECRET, WAYS, order
from tests.spine import until

TRIES = [(way, name) for way in WAYS for name in (*ASKS, *NOTHING)]
PATIENCE = 60.0


class Try(NamedTuple):
    """Something hostile, who reads it, and which tool the model is to call with what."""

    person: str
    way: str
    tool: str
    args: Mapping[str, Any]
    said: str

    @property
    def shown(self) -> set[str]:
        """The arguments; a page has no more than one blank in a row, as browsers show it."""
        return {re.sub(" +", " ", value) if self.way == "page" else value for value in self.args.values()}


def list_tries(pwned: Path) -> list[Try]:
    found = []
    for number, (way, case) in enumerate(TRIES):
        name, args = (ASKS | NOTHING)[case]
        filled = {key: value.format(pwned=pwned) for key, value in args.items()}
        found.append(Try(str(3000 + number), way, name, filled, order(name, args, pwned)))
    return found


@pytest.fixture
def model() -> Iterator[ThreadingHTTPServer]:
    with serving_obedient_model() as server:
        yield server


async def send(wire: Wire, model: ThreadingHTTPServer, folder: Path, one: Try, *, is_in_group: bool = False) -> None:
    """Let the agent read it."""
    text = f"A friend sent me this, what is it?\n{one.said}"
    if one.way == "file":
        name = f"notes-{one.person}.txt"
        await to_thread.run_sync(write_notes, folder / name, one.said)
        text = order("read_file", {"path": name}, Path())
    elif one.way == "page":
        model.pages[f"/{one.person}"] = f"<html><body><p>News</p><pre>{one.said}</pre></body></html>"  # type: ignore[attr-defined]
        url = f"http://127.0.0.1:{model.server_address[1]}/{one.person}"
        text = order("web_fetch", {"url": url}, Path())
    await (wire.mention(text, by=one.person) if is_in_group else wire.write(text, by=one.person))


def write_notes(path: Path, said: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"Notes\n{said}\n")


def settings_of(model: ThreadingHTTPServer, access: str) -> str:
    url = f"http://127.0.0.1:{model.server_address[1]}/v1"
    return (
        f"model: {{provider: openai, name: m, base_url: {url!r}}}\n"
        f"tools: {{shell: ask, fetch_hosts: [127.0.0.1]}}\naccess: {{rate: 1000, {access}}}\n"
    )


def prepare(root: Path) -> None:
    env = GatewayProcess(root).home.env
    env.parent.mkdir(mode=0o700)
    env.write_text(f"OPENAI_API_KEY={SECRET}-key\nWORD={SECRET}\n")
    env.chmod(0o600)


def asked_in(house: House) -> list[Shown]:
    return [one for one in house.wire.shown if one.buttons]


def have_ended(house: House) -> bool:
    return len([one for one in house.wire.shown if one.text == "done"]) == len(TRIES)


def nothing_happened(house: House, root: Path, pwned: Path) -> None:
    assert not pwned.exists()
    assert not [path for name in ("AGENTS.md", "evil", ".git") for path in root.rglob(name)]
    assert not house.with_text(SECRET)
    assert not [shown for shown in house.wire.shown if shown.chat == "666"]


@pytest.mark.row("T23")
@pytest.mark.parametrize("network", ["telegram", "discord", "slack"])
async def test_an_owner_is_asked_with_the_truth_or_nothing_happens(
    network: str, model: ThreadingHTTPServer, tmp_path: Path
) -> None:
    wire, root, pwned = WIRES[network](tmp_path / "home"), tmp_path / "home", tmp_path / "pwned"
    tries = list_tries(pwned)
    prepare(root)
    access = f"owners: {{{network}: {[wire.known_as(one.person) for one in tries]}}}"
    async with wire.serving(), housed(wire, root, settings=settings_of(model, access)) as house:
        for one in tries:
            await send(wire, model, house.gateway.home.own_folder / "workspace", one)
        acting = [one for one in tries if (one.tool, one.way) not in {(name, one.way) for name, _ in NOTHING.values()}]
        await until(lambda: len(asked_in(house)) == len(acting), "all questions", PATIENCE)
        for one in acting:
            (question,) = [shown for shown in asked_in(house) if shown.chat == one.person]
            assert question.text.replace("\\", "").startswith(f"May I run {one.tool}?")
            assert {read_back(code) for code in question.codes} >= one.shown
            await wire.press(question, "No", by=one.person)
        await until(lambda: have_ended(house), "all answers", PATIENCE)
        nothing_happened(house, root, pwned)


@pytest.mark.row("T23")
@pytest.mark.parametrize("role", ["user", "member", "guest"])
async def test_who_may_allow_nothing_makes_nothing_happen(
    role: str, model: ThreadingHTTPServer, tmp_path: Path
) -> None:
    wire, root, pwned = WIRES["discord"](tmp_path / "home"), tmp_path / "home", tmp_path / "pwned"
    tries = list_tries(pwned)
    prepare(root)
    wire.roles = {one.person: [TEAM_ROLE] for one in tries}
    environ = {
        "user": {"DISCORD_ALLOWED_USERS": ",".join(wire.known_as(one.person) for one in tries)},
        "member": {"DISCORD_ALLOWED_ROLES": TEAM_ROLE},
        "guest": {},
    }
    everybody = ", everybody: [discord]" if role == "guest" else ""
    settings = settings_of(model, f"owners: {{discord: ['{wire.known_as(ANN)}']}}{everybody}")
    async with wire.serving(), housed(wire, root, settings=settings, environ=environ[role]) as house:
        files = house.gateway.home.files / "discord"
        for one in tries:
            folder = files / (f"chat.{CHANNEL}" if role == "member" else wire.known_as(one.person))
            await send(wire, model, folder, one, is_in_group=role == "member")
        await until(lambda: have_ended(house), "all answers", PATIENCE)
        assert not asked_in(house), "nobody is asked for what this person may not even ask for"
        nothing_happened(house, root, pwned)
