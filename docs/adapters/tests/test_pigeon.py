"""The behaviour suite on carrier pigeons: a test is P1, who writes letters and reads those that come."""

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.testing.networks import ANN, Shown
from gateway.testing.networks.suite import *  # noqa: F403 - each test of it is one of this file

ADAPTERS = Path(__file__).parent.parent
LEFT_OUT = {
    "one person has the pigeons, and nobody else reaches them": (
        "test_a_stranger_is_denied_by_every_way_in",
        "test_an_invitation_is_what_the_networks_own_people_can_use",
        "test_in_a_group_nobody_answers_in_somebody_elses_stead",
        "test_in_a_group_only_what_is_meant_for_us_is_answered_and_in_its_place",
        "test_an_admin_says_in_a_group_what_is_answered_there",
        "test_in_a_quiet_chat_who_calls_tells_what_was_said_before_and_nothing_else_is_answered",
        "test_other_bots_are_not_answered_and_what_nobody_knows_is_passed_over",
        "test_a_chat_that_is_closed_to_us_is_told_as_a_failure",
    ),
    "a letter that flies stays as it is, and has no buttons": (
        "test_a_question_is_answered_by_a_button_that_then_is_dead",
        "test_an_edit_comes_as_an_edit",
        "test_what_its_author_takes_back_is_gone",
        "test_reactions_are_told",
        "test_an_answer_is_shown_while_it_grows_and_stays_one_message",
        "test_in_a_group_an_answer_grows_in_its_place_and_stays_one_message",
        "test_an_answer_that_grows_when_the_gateway_ends_is_ended_in_its_place_by_the_next",
        "test_an_answer_that_is_stopped_while_it_grows_ends_where_it_is",
        "test_whoever_changes_an_answer_that_grew_already_has_the_last_word",
        "test_what_the_tools_do_is_a_line_that_the_answer_takes_the_place_of",
        "test_a_turn_that_is_stopped_leaves_no_line_of_its_tools",
        "test_the_answer_is_a_new_message_below_words_before_a_tool_and_its_question",
    ),
    "a pigeon brings letters and no parcels": (
        "test_a_file_comes_in_under_a_name_of_ours",
        "test_an_album_is_one_message",
        "test_files_go_out_and_come_in_whole_when_they_are_large",
    ),
    "a letter is words": (
        "test_a_sticker_comes_as_what_it_is",
        "test_a_place_comes_as_what_it_is",
        "test_a_contact_comes_as_what_it_is",
        "test_a_poll_comes_as_what_it_is",
    ),
    "a letter may be as long as it likes": (
        "test_a_long_answer_comes_in_whole_pieces",
        "test_an_answer_is_so_many_messages_and_the_rest_a_file",
    ),
    "a loft is a folder: no line to it breaks, nobody there is busy, asks for a token or sees us at work": (
        "test_too_many_messages_wait_as_long_as_they_are_told",
        "test_a_line_that_breaks_is_built_anew",
        "test_a_line_that_breaks_in_the_middle_of_an_answer_loses_and_doubles_nothing",
        "test_a_token_that_is_no_longer_good_is_said_with_the_remedy",
        "test_the_network_sees_that_somebody_is_at_work",
        "test_a_network_says_when_it_is_asked_whether_it_answers",
    ),
}


class PigeonWire:
    """Fills `Wire`, as far as there are pigeons for it: what is left out above needs the rest."""

    network = "pigeon"
    settings = ""
    limit = 100_000

    def __init__(self, loft: Path) -> None:
        self._loft = loft
        self._numbers = itertools.count(1)
        self._last = ("", "")

    @property
    def environ(self) -> Mapping[str, str]:
        return {
            "GATEWAY_ADAPTERS_DIRS": str(ADAPTERS),
            "GATEWAY_PLATFORMS_PIGEON_ENABLED": "true",
            "PIGEON_RING": "ring-abcdefgh",
            "PIGEON_LOFT": str(self._loft),
        }

    @property
    def shown(self) -> list[Shown]:
        letters = sorted(self._loft.glob("*.out"), key=lambda one: one.stat().st_mtime_ns)
        return [Shown(one.stem, ANN, one.read_text()) for one in letters]

    def known_as(self, _person: str) -> str:
        return "P1"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        self._loft.mkdir()
        yield

    async def write(self, text: str) -> str:
        self._last = (f"letter{next(self._numbers)}", text)
        await self.again()
        return self._last[0]

    async def again(self) -> None:
        """The pigeon with the last letter comes once more."""
        name, text = self._last
        (self._loft / f"{name}.new").write_text(text, newline="")
        (self._loft / f"{name}.new").rename(self._loft / f"{name}.in")


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[PigeonWire]:
    wire = PigeonWire(tmp_path / "loft")
    async with wire.serving():
        yield wire
