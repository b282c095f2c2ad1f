"""Tools without a chat to speak in, and polls that no network takes."""

import pytest

from gateway.agent import ToolContext
from gateway.agent.toolbox.chat import make_chat_tools, send_message, send_poll
from gateway.agent.tools import ArgumentError, check_args
from gateway.errors import AgentError


async def test_without_a_chat_there_is_nobody_to_speak_to():
    with pytest.raises(AgentError, match="no chat to write to"):
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
