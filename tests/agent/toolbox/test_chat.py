"""When reminders are due, as a model may write it; and polls that no network takes."""

from datetime import datetime

import pytest

from gateway.agent import ToolContext
from gateway.agent.toolbox.chat import make_chat_tools, parse_time, send_message, send_poll
from gateway.agent.tools import ArgumentError, check_args
from gateway.errors import AgentError

NOW = datetime(2030, 1, 1, 12, 0).astimezone().timestamp()


@pytest.mark.parametrize(
    ("when", "seconds"), [("20m", 1200), (" 1h30m ", 5400), ("2d", 172_800), ("2030-01-01T12:30", 1800)]
)
def test_a_time_is_a_while_ahead_or_a_moment(when, seconds):
    assert parse_time(when, NOW) == NOW + seconds


@pytest.mark.parametrize("when", ["soon", "", "2029-12-31T12:00", "800d", "0m", "2030-13-01"])
def test_what_is_no_time_past_or_too_far_is_refused_with_how_it_is_written(when):
    with pytest.raises(AgentError, match=r"write 20m|is past"):
        parse_time(when, NOW)


async def test_without_a_chat_there_is_nobody_to_speak_to():
    with pytest.raises(AgentError, match="no chat here"):
        await send_message("hello", ToolContext())


@pytest.mark.parametrize(
    ("question", "options"), [("Lunch?", ("yes", "yes")), ("[Lunch]?", ("yes", "no")), ("Lunch?", ("yes", "no\nor"))]
)
async def test_a_poll_that_no_network_takes_is_refused_with_what_one_is(question, options):
    with pytest.raises(AgentError, match="a poll has"):
        await send_poll(question, options, ToolContext())


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("send_poll", {"question": "Lunch?", "options": ["yes"]}),
        ("send_poll", {"question": "", "options": ["yes", "no"]}),
        ("send_place", {"latitude": 91, "longitude": 0}),
        ("send_place", {"latitude": 1}),
    ],
)
def test_what_is_no_poll_or_place_is_told_with_what_the_tool_takes(name, args):
    (given,) = (one for one in make_chat_tools() if one.name == name)
    with pytest.raises(ArgumentError, match="Parameters"):
        check_args(given, args)
