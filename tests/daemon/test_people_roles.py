"""People of each role before a running gateway: the guards, the commands of an operator, and their answers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway.daemon.control_verbs import build_verbs
from gateway.messages.roles import ROLES
from gateway.records.activity import CALLER, Caller
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import STRANGER
from tests.adapters.telegram_wire import TelegramWire
from tests.daemon.test_verb_rights import WORD, ask
from tests.spine import until

PEOPLE = dict(zip(ROLES, ("1001", "1002", "1003", "1004", "1005"), strict=True))
SETTINGS = f"""
access:
  owners: {{telegram: ['{PEOPLE["owner"]}']}}
  groups:
    chiefs: {{people: [telegram:{PEOPLE["admin"]}], role: admin}}
    ops: {{people: [telegram:{PEOPLE["operator"]}], role: operator}}
    crowd: {{people: [telegram:{PEOPLE["user"]}]}}
    passers-by: {{people: [telegram:{PEOPLE["guest"]}], role: guest, rate: 3}}
"""
HERE = ("terminal:owner", "web:owner")
GUARD = "from gateway.hooks import Deny\n\n\ndef handle(event_type, context):\n    return Deny('{word} is refused')\n"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    wire = TelegramWire()
    async with wire.serving():
        wire.environ.pop("TELEGRAM_ALLOWED_USERS", None)
        script = ({"text": "I heard you."},) * 60
        async with housed(wire, tmp_path / "home", *script, settings=SETTINGS, environ={}) as house:
            yield house


async def answer(house: House, text: str, by: str) -> str:
    before = len(house.wire.shown)
    await house.wire.write(text, by=by)
    await until(lambda: len(house.wire.shown) > before, f"the answer to {text}")
    return house.wire.shown[-1].text


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("word", "refused"),
    [
        ("user", ["owner", "admin", "operator", "user", "guest"]),
        ("operator", ["owner", "admin", "operator"]),
        ("owner", ["owner", "admin"]),
    ],
)
async def test_a_guard_of_a_folder_meets_who_may_as_much_or_more(house: House, word: str, refused: list[str]) -> None:
    folder = house.gateway.home.hooks / "guard"
    folder.mkdir(parents=True)
    (folder / "HOOK.yaml").write_text(f"intercepts: [message:received]\nwhen: {{scope: {word}}}\non_error: deny\n")
    (folder / "handler.py").write_text(GUARD.format(word=word))
    await house.gateway.folder_hooks.reload("guard")
    answers = {role: await answer(house, "hello", by) for role, by in PEOPLE.items()}
    assert [role for role, said in answers.items() if "is refused" in said] == refused
    assert [role for role, said in answers.items() if said == "I heard you."] == [r for r in ROLES if r not in refused]


async def test_people_are_listed_page_by_page_whoever_spoke_last_first(house: House) -> None:
    for role in ("user", "guest", "user", "admin"):
        await answer(house, "hello", PEOPLE[role])
    people = build_verbs(house.gateway.groups.find)["people.list"]

    async def list_people(**params: object) -> list[str]:
        found = (await ask(people, "owner", params))[0]
        assert found["count"] == len(PEOPLE) + len(HERE)
        return [one["person"].removeprefix("telegram:") for one in found["people"]]

    spoke = [PEOPLE[role] for role in ("admin", "user", "guest")]
    latest = await list_people(sort="latest")
    assert latest == [*spoke, PEOPLE["owner"], PEOPLE["operator"], *HERE]
    assert await list_people(sort="latest", limit=2) == latest[:2]
    assert await list_people(sort="latest", first=2, limit=2) == latest[2:4]
    by_id = await list_people(sort="id")
    assert by_id == [*sorted(PEOPLE.values()), *HERE]
    assert await list_people(sort="id", first=4, limit=100) == by_id[4:]
    silent = [PEOPLE["owner"], PEOPLE["operator"], *HERE]
    assert await list_people() == [*sorted(spoke), *silent], "who has no name here yet is behind the others"
    assert (await list_people(sort="role"))[:2] == [PEOPLE["owner"], "terminal:owner"]
    assert await list_people(limit=0) == []


FAILING = "def handle(event_type, context):\n    raise ValueError(context['message'])\n"


@pytest.mark.timeout(120)
async def test_an_operator_keeps_it_going_and_reads_nobodys_words(house: House) -> None:
    folder = house.gateway.home.hooks / "leaky"
    folder.mkdir(parents=True)
    (folder / "HOOK.yaml").write_text("events: [agent:end]\nbreaker: {failures: 1}\n")
    (folder / "handler.py").write_text(FAILING)
    await house.gateway.folder_hooks.reload("leaky")
    await answer(house, f"my {WORD}", PEOPLE["user"])
    operator = PEOPLE["operator"]
    assert f"telegram user {operator}, operator;" in await answer(house, "/whoami", operator)
    for command in (
        "/status",
        "/hooks",
        "/platform",
        "/help",
        "/letters",
        f"/letters retry {WORD}",
        "/letters retry leaky",
    ):
        assert WORD not in (await answer(house, command, operator)).replace(f"of {WORD}", ""), command
    assert "/platform [pause|resume|restart NAME]" in await answer(house, "/help", operator)
    assert "leaky has no dead letters" in await answer(house, "/letters retry leaky", operator)
    assert "telegram is connected again" in await answer(house, "/platform restart telegram", operator)
    for by in (PEOPLE["user"], PEOPLE["guest"]):
        assert "Unknown command here: /platform" in await answer(house, "/platform pause telegram", by)
    assert "Unknown command here: /letters" in await answer(house, "/letters retry leaky", PEOPLE["user"])
    for command in ("/pairing", "/pairing approve ABCD2345", "/restart"):
        assert "Unknown command here" in await answer(house, command, operator)
    CALLER.set(Caller("owner", "terminal", "owner"))
    found = (
        await ask(build_verbs(house.gateway.groups.find)["activity.list"], "owner", {"who": f"telegram:{operator}"})
    )[0]
    done = [(one["what"], one["on"], one["outcome"]) for one in found["activity"]]
    assert done == [
        ("hooks.dead_retry", "leaky", "done"),
        ("hooks.dead_retry", "leaky", "done"),
        ("platform.steer", "restart telegram", "done"),
        ("/pairing", "", "refused"),
        ("/restart", "", "refused"),
    ]


@pytest.mark.timeout(120)
async def test_an_operator_is_made_by_a_code_and_a_group_that_is_gone_lets_nobody_in(house: House) -> None:
    code = (await answer(house, "hello", STRANGER)).split("code is ")[1][:8]
    await house.wire.write(f"/pairing approve {code} --as operator", by=PEOPLE["admin"])
    await house.shows("may write to the bot now, as operator")
    await house.shows("You can use this bot now")
    assert f"telegram user {STRANGER}, operator;" in await answer(house, "/whoami", STRANGER)
    assert await answer(house, "/platform", STRANGER) == "telegram: up"
    raised = await answer(house, f"/pairing approve telegram:{STRANGER} --as owner", PEOPLE["admin"])
    assert "where the gateway runs" in raised
    await house.gateway.access.pairings.approve(f"telegram:{STRANGER}", "whoever runs this gateway", "owner")
    assert "which is more than you are" in await answer(house, f"/pairing revoke {STRANGER}", PEOPLE["admin"])
    rules = house.gateway.access.rules
    await house.gateway.access.apply_rules(replace(rules, groups={}))
    assert "You are not authorized yet" in await answer(house, "/platform", PEOPLE["operator"])
