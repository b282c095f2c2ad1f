"""The wires of all networks, made for a gateway in a home, and what of the common suite does not apply to which."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.testing.networks.wire import GROUP
from tests.adapters import discord_facts, slack_wire
from tests.adapters.discord_wire import DiscordWire
from tests.adapters.page_wire import PageWire
from tests.adapters.slack_calls_wire import SlackCallsWire
from tests.adapters.slack_wire import SlackWire
from tests.adapters.telegram_calls_wire import TelegramCallsWire
from tests.adapters.telegram_wire import TelegramWire
from tests.adapters.terminal_wire import TerminalWire

WIRES: dict[str, Callable[[Path], Any]] = {
    "telegram": lambda _root: TelegramWire(),
    "telegram-calls": lambda _root: TelegramCallsWire(),
    "discord": lambda _root: DiscordWire(),
    "slack": lambda _root: SlackWire(),
    "slack-calls": lambda _root: SlackCallsWire(),
    "terminal": TerminalWire,
    "web": PageWire,
}
ROOMS = {"telegram": GROUP, "discord": discord_facts.CHANNEL, "slack": slack_wire.CHANNEL}
"""By which id each network knows the group."""
DELETIONS = ("test_what_its_author_takes_back_is_gone",)
GROUPS = (
    "test_in_a_group_nobody_answers_in_somebody_elses_stead",
    "test_in_a_group_only_what_is_meant_for_us_is_answered_and_in_its_place",
    "test_in_a_group_an_answer_grows_in_its_place_and_stays_one_message",
    "test_an_admin_says_in_a_group_what_is_answered_there",
    "test_in_a_quiet_chat_who_calls_tells_what_was_said_before_and_nothing_else_is_answered",
)
PLACES_AND_CONTACTS = ("test_a_place_comes_as_what_it_is", "test_a_contact_comes_as_what_it_is")
PARTS = ("test_a_sticker_comes_as_what_it_is", "test_a_poll_comes_as_what_it_is", *PLACES_AND_CONTACTS)
ACCOUNTS = ("test_a_bot_with_a_name_goes_on_where_it_was",)
STRANGERS = (
    "test_a_stranger_is_denied_by_every_way_in",
    "test_an_invitation_is_what_the_networks_own_people_can_use",
)
CHANGES = (
    "test_what_the_tools_do_is_a_line_that_the_answer_takes_the_place_of",
    "test_the_answer_is_a_new_message_below_words_before_a_tool_and_its_question",
    "test_a_turn_that_is_stopped_leaves_no_line_of_its_tools",
)
NETWORKS = (
    "test_a_network_proves_itself_by_what_comes_and_goes",
    "test_a_network_says_when_it_is_asked_whether_it_answers",
    "test_a_long_answer_comes_in_whole_pieces",
    "test_an_answer_is_so_many_messages_and_the_rest_a_file",
    "test_too_many_messages_wait_as_long_as_they_are_told",
    "test_a_chat_that_is_closed_to_us_is_told_as_a_failure",
    "test_a_token_that_is_no_longer_good_is_said_with_the_remedy",
    "test_one_network_can_be_paused_and_goes_on_with_what_came_meanwhile",
)
NOT_FOR_THE_TERMINAL: dict[str, tuple[str, ...]] = {
    "nobody but the owner reaches its socket": (
        *STRANGERS,
        "test_other_bots_are_not_answered_and_what_nobody_knows_is_passed_over",
    ),
    "it has one chat, without edits, deletions, reactions and buttons": (
        *DELETIONS,
        *GROUPS,
        "test_a_question_is_answered_by_a_button_that_then_is_dead",
        "test_an_edit_comes_as_an_edit",
        "test_reactions_are_told",
    ),
    "what was written there is not taken back": ("test_whoever_changes_an_answer_that_grew_already_has_the_last_word",),
    "a path that is typed is as good as a file": (
        "test_a_file_comes_in_under_a_name_of_ours",
        "test_an_album_is_one_message",
        "test_files_go_out_and_come_in_whole_when_they_are_large",
        "test_a_picture_that_a_message_answers_is_shown_too",
        "test_a_voice_note_is_heard",
        "test_who_wants_it_hears_the_answer_behind_its_text",
    ),
    "people write and attach there, and send nothing else": PARTS,
    "it is the gateway's own, and has no bots": ACCOUNTS,
    "it has no messages that change": CHANGES,
    "there is no network between, with limits, tokens and moods": (
        *NETWORKS,
        "test_the_network_sees_that_somebody_is_at_work",
    ),
}
NOT_FOR_THE_PAGE: dict[str, tuple[str, ...]] = {
    "the port lets in nobody without a role, and nobody is paired there": STRANGERS,
    "it has no groups, no bots, no reactions, no answers to a message, and nothing said is taken back": (
        *DELETIONS,
        *GROUPS,
        "test_a_picture_that_a_message_answers_is_shown_too",
        "test_other_bots_are_not_answered_and_what_nobody_knows_is_passed_over",
        "test_reactions_are_told",
    ),
    "people write and attach there, and send nothing else": PARTS,
    "it is the gateway's own, and has no bots": ACCOUNTS,
    "it has no messages that change": CHANGES,
    "there is no network between, with limits, tokens and moods": NETWORKS,
}
# Telegram tells no bot that somebody took a message back. Discord has stickers and polls, Slack nothing of the kind.
# And Slack calls each bot at an address of its own: see test_two_bots.py.
WITHOUT = {
    **dict.fromkeys(("telegram", "telegram-calls"), DELETIONS),
    "discord": PLACES_AND_CONTACTS,
    "slack": PARTS,
    "slack-calls": ACCOUNTS,
    "terminal": [name for names in NOT_FOR_THE_TERMINAL.values() for name in names],
    "web": [name for names in NOT_FOR_THE_PAGE.values() for name in names],
}
WAYS_IN = (
    "test_a_message_in_is_received_once_and_its_reply_is_sent_once",
    "test_what_the_network_delivers_twice_is_answered_once",
    "test_a_stranger_is_denied_by_every_way_in",
    "test_a_question_is_answered_by_a_button_that_then_is_dead",
    "test_in_a_group_only_what_is_meant_for_us_is_answered_and_in_its_place",
    "test_an_edit_comes_as_an_edit",
    "test_an_album_is_one_message",
    "test_reactions_are_told",
    "test_other_bots_are_not_answered_and_what_nobody_knows_is_passed_over",
    "test_any_text_arrives_as_it_is",
    "test_a_line_that_breaks_is_built_anew",
    "test_a_token_that_is_no_longer_good_is_said_with_the_remedy",
    "test_what_came_while_nobody_listened_is_answered",
    "test_one_network_can_be_paused_and_goes_on_with_what_came_meanwhile",
    *DELETIONS,
    *ACCOUNTS,
)
"""What sees how a network hands over what people do: all else is one code, whether the network is asked or calls."""


def is_tried_on(test: str, wire: str) -> bool:
    """Return True if a test of the common suite applies to this wire."""
    return test not in WITHOUT[wire] and (not wire.endswith("-calls") or test in WAYS_IN)
