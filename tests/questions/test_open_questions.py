"""Open questions of all conversations: shown whole, answered once, and as they were shown."""

import pytest

from gateway.agent import tool
from gateway.errors import SessionError
from tests.dispatcher.room import KEY, ROOM, Chat, chat
from tests.spine import until

ODD = "ls \u202e -la\x07\n<script>alert(1)</script>"
TURN = {"user": "list", "answers": [{"tool_calls": [{"name": "run", "args": {"command": ODD}}]}, {"text": "done"}]}
SELF, OTHER = [("net", "7"), ("web", "7")], [("net", "1")]


@tool(asks=True, subject=lambda args: str(args["command"]))
async def run(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


async def asked(room: Chat) -> None:
    await until(lambda: any(reply.buttons for reply in room.net.sent), "the question")


async def test_an_approval_is_shown_whole_and_settled_once() -> None:
    async with chat(TURN, tools=(run,)) as room:
        await room.write("list")
        await asked(room)
        questions = room.dispatcher.questions
        (found,) = await questions.list_approvals(OTHER)
        assert found["calls"] == [{"tool": "run", "args": {"command": ODD}}]
        assert found["shown"][-1] == {
            "words": "command:",
            "text": "ls ⟨U+202E⟩ -la⟨U+0007⟩\n<script>alert(1)</script>",
        }
        with pytest.raises(SessionError, match="asks for something else now"):
            await questions.answer_approval(found["id"], "yes", OTHER, "0" * 64)
        assert [one["result"] for one in await room.told("tool:after") if one["result"]] == []
        await questions.answer_approval(found["id"], "yes", OTHER, found["digest"])
        await until(lambda: any(reply.text == "done" for reply in room.net.sent), "the end")
        with pytest.raises(SessionError, match="was answered, or no answer came in time"):
            await questions.answer_approval(found["id"], "deny", OTHER, found["digest"])
        assert await questions.list_approvals(OTHER) == []


async def test_a_yes_to_what_has_changed_since_it_was_shown_counts_for_nothing() -> None:
    """Somebody has the question on the screen; it is answered elsewhere, and comes again for another call."""
    wanted = ["ls a"]
    async with chat(TURN, tools=(run,)) as room:
        room.hooks.on("tool:before", lambda event: {"args": {"command": wanted[-1]}})
        await room.write("list")
        await asked(room)
        questions = room.dispatcher.questions
        (shown,) = await questions.list_approvals(OTHER)
        wanted.append("ls b")
        await questions.answer_approval(shown["id"], "yes", OTHER, "")

        async def is_asked_again() -> bool:
            return [one["calls"][0]["args"] for one in await questions.list_approvals(OTHER)] == [{"command": "ls b"}]

        await until(is_asked_again, "the next question")
        with pytest.raises(SessionError, match="was answered, or no answer came in time"):
            await questions.answer_approval(shown["id"], "yes", OTHER, shown["digest"])
        (now,) = await questions.list_approvals(OTHER)
        assert now["digest"] != shown["digest"]
        assert [one["result"] for one in await room.told("tool:after") if one["result"]] == []


@pytest.mark.parametrize("lasts", ["session", "always"])
async def test_for_longer_only_whoever_wants_it_may_allow_it(lasts: str) -> None:
    async with chat(TURN, TURN, tools=(run,)) as room:
        await room.write("list")
        await asked(room)
        questions = room.dispatcher.questions
        (theirs,) = await questions.list_approvals(OTHER)
        (own,) = await questions.list_approvals(SELF)
        assert (theirs["can_last"], own["can_last"]) == (False, True)
        with pytest.raises(SessionError, match="once only"):
            await questions.answer_approval(own["id"], lasts, OTHER, "")
        await questions.answer_approval(own["id"], lasts, SELF, own["digest"])
        await until(lambda: any(reply.text == "done" for reply in room.net.sent), "the end")
        await room.write("/approvals")
        await until(lambda: any(f"({lasts})" in reply.text for reply in room.net.sent), "what stands")


async def test_any_other_question_is_answered_in_words() -> None:
    heard: list[object] = []
    async with chat({"user": "", "text": "over"}) as room:
        room.hooks.on("agent:start", lambda event: heard.append(event.ask("Which \u202eone?")))
        await room.write("go")
        await asked(room)
        questions = room.dispatcher.questions
        (found,) = await questions.list_questions()
        assert (found["platform"], found["user_id"], found["session_key"]) == (ROOM.platform, "7", KEY)
        assert found["shown"] == [{"words": "A question:", "text": "Which ⟨U+202E⟩one?"}]
        with pytest.raises(SessionError, match="asks for something else now"):
            await questions.answer_question(found["id"], "the left", OTHER, "1" * 64)
        assert await questions.answer_question(found["id"], "the left", OTHER, found["digest"]) == KEY
        await until(lambda: heard == ["the left"], "the answer")
        assert await questions.list_questions() == []
        with pytest.raises(SessionError, match="was answered"):
            await questions.answer_question(found["id"], "the right", OTHER, "")
