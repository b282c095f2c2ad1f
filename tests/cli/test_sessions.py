"""`hermes-gateway sessions`: the conversations of a running gateway, from outside."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

KEY = "agent:main:terminal:dm:main"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("sessions") / "home") as gateway:
        gateway.script(
            {"user": "zebra", "answers": [{"text": "A striped answer."}]},
            {"user": "colour", "answers": [{"text": "\x1b[31mred\x1b[0m"}]},
            {"user": "slowly", "answers": [{"text": "One.", "delay": "60s"}]},
            {"user": "", "text": "Well."},
        )
        gateway.start()
        gateway.say("tell me of the zebra")
        gateway.say("/title Animals")
        gateway.say("the colour please", "paint")
        yield gateway


def asked(gateway: GatewayProcess, *words: str) -> Any:
    done = gateway.cli("sessions", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def id_of(gateway: GatewayProcess, key: str = KEY) -> str:
    found = asked(gateway, "list")["sessions"]
    return str(next(one["session_id"] for one in found if one["session_key"] == key))


def test_list_shows_them_the_last_used_first(gateway: GatewayProcess) -> None:
    found = asked(gateway, "list")["sessions"]
    assert [one["session_key"].rpartition(":")[2] for one in found] == ["paint", "main"]
    assert (found[1]["title"], found[1]["turns"], found[1]["is_current"]) == ("Animals", 1, True)
    shown = gateway.cli("sessions", "list").stdout
    assert "Animals" in shown
    assert id_of(gateway) in shown
    assert len(asked(gateway, "list", "--limit", "1")["sessions"]) == 1
    assert asked(gateway, "list", "--platform", "telegram")["sessions"] == []


def test_show_takes_an_id_its_beginning_or_a_key(gateway: GatewayProcess) -> None:
    whole = id_of(gateway)
    for name in (whole, whole[:-2], KEY):
        assert [entry["role"] for entry in asked(gateway, "show", name)["entries"]] == ["user", "assistant"]
    assert "A striped answer." in gateway.cli("sessions", "show", KEY).stdout


@pytest.mark.row("T29")
def test_what_was_said_cannot_act_on_the_terminal(gateway: GatewayProcess) -> None:
    shown = gateway.cli("sessions", "show", "agent:main:terminal:dm:paint").stdout
    assert "red" in shown
    assert "\x1b" not in shown


def test_one_that_is_not_there_or_not_clear_is_said_and_nothing_done(gateway: GatewayProcess) -> None:
    strange = gateway.cli("sessions", "show", "19990101")
    assert (strange.returncode, "no session begins with '19990101'" in strange.stderr) == (1, True)
    vague = gateway.cli("sessions", "delete", "2", "--yes")
    assert (vague.returncode, "more than one session begins with '2'" in vague.stderr) == (1, True)
    nobody = gateway.cli("sessions", "show", "agent:main:terminal:dm:nobody")
    assert (nobody.returncode, "dm:nobody not found" in nobody.stderr) == (1, True)
    assert len(asked(gateway, "list")["sessions"]) == 2


def test_search_finds_words_anywhere(gateway: GatewayProcess) -> None:
    hits = asked(gateway, "search", "striped")["hits"]
    assert [(hit["role"], hit["session_key"]) for hit in hits] == [("assistant", KEY)]
    assert "tell me of the zebra" in gateway.cli("sessions", "search", "zeb").stdout
    assert asked(gateway, "search", "elephant")["hits"] == []
    assert "no such message" in gateway.cli("sessions", "search", "elephant").stdout


def test_export_is_a_file_of_either_kind(gateway: GatewayProcess, tmp_path: Path) -> None:
    markdown = gateway.cli("sessions", "export", KEY).stdout
    assert markdown.startswith("# Animals")
    assert "## Assistant\n\nA striped answer." in markdown
    file = tmp_path / "one.json"
    assert gateway.cli("sessions", "export", KEY, "--format", "json", "-o", str(file)).returncode == 0
    whole = json.loads(file.read_text())
    assert (whole["title"], whole["session_id"], len(whole["entries"])) == ("Animals", id_of(gateway), 2)


def test_rebuild_makes_the_same_index_again(gateway: GatewayProcess) -> None:
    before = asked(gateway, "list")
    assert asked(gateway, "rebuild")["records"] > 0
    assert asked(gateway, "list") == before


def test_long_lists_come_page_by_page(gateway: GatewayProcess) -> None:
    for verb, rows in ((("list",), "sessions"), (("search", "the"), "hits")):
        whole = asked(gateway, *verb)
        assert (len(whole[rows]), whole["next"]) == (2, "")
        page, found = asked(gateway, *verb, "-n", "1"), []
        assert f"the same with --after '{page['next']}'" in gateway.cli("sessions", *verb, "-n", "1").stderr
        while page["next"]:
            found += page[rows]
            page = asked(gateway, *verb, "-n", "1", "--after", page["next"])
        assert (found, page[rows]) == (whole[rows], [])
        wrong = gateway.cli("sessions", *verb, "--after", "nonsense")
        assert (wrong.returncode, "no page begins at 'nonsense'" in wrong.stderr) == (1, True)


def test_show_takes_a_part_of_what_was_said_with_its_beginnings(gateway: GatewayProcess) -> None:
    whole = asked(gateway, "show", KEY)
    assert (whole["first"], whole["count"], len(whole["entries"])) == (0, 2, 2)
    last = asked(gateway, "show", KEY, "-n", "1", "--longest", "9")
    assert (last["first"], last["count"], [one["content"] for one in last["entries"]]) == (1, 2, ["A striped"])
    assert last["entries"][0]["cut"] == len("A striped answer.")
    before = asked(gateway, "show", KEY, "-n", "1", "--before", str(last["first"]))
    assert before["entries"] == whole["entries"][:1]
    assert "1 entry before these: the same with --before 1" in gateway.cli("sessions", "show", KEY, "-n", "1").stderr


def test_what_runs_in_one_can_be_stopped(gateway: GatewayProcess) -> None:
    assert gateway.cli("sessions", "stop", KEY).stdout == "nothing runs there\n"
    with ThreadPoolExecutor(1) as somebody:
        said = somebody.submit(gateway.say, "count slowly", "slow")
        gateway.until(lambda: gateway.call("status")["turns"]["running"] == 1)
        assert asked(gateway, "stop", "agent:main:terminal:dm:slow")["stopped"] == "running"
        assert said.result()["status"] == "interrupted"


def test_delete_asks_first_and_then_forgets_for_good(gateway: GatewayProcess) -> None:
    gateway.say("the zebra once more", "secret")
    key = "agent:main:terminal:dm:secret"
    refused = gateway.cli("sessions", "delete", key)
    assert (refused.returncode, "add --yes" in refused.stderr) == (2, True)
    assert gateway.cli("sessions", "delete", id_of(gateway, key), "--yes").returncode == 0
    assert key not in [one["session_key"] for one in asked(gateway, "list")["sessions"]]
    assert asked(gateway, "search", "once more")["hits"] == []
    assert gateway.say("hello again zebra", "secret")["status"] == "ok", "the conversation begins anew"


def test_without_a_gateway_it_says_so(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        for verb in (("list",), ("show", "x"), ("rebuild",)):
            done = gateway.cli("sessions", *verb)
            assert (done.returncode, "no gateway is running" in done.stderr) == (3, True)
