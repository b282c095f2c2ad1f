"""The places in which an approver gets a question, and the question's text.

First come the direct chats of approvers on the network of the person who asks, then those on other networks, then the
home channels. The arguments are only for approvers: in a chat with other readers, the question names only the tool.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from gateway.access.access_control import WEB, AccessControl
from gateway.agent.tool_approval import UNREACHABLE, UNSHOWN
from gateway.events import AskedCall, is_yes
from gateway.logs.signs import show_signs
from gateway.messages.message import Address, Button, LiteralText, Reply
from gateway.questions.text import APPROVAL_END, show_calls, to_markdown
from gateway.records import records, subjects
from gateway.records.records import ApprovalRequest
from gateway.sessions.session import OpenTurn

QUESTION_SIGN = "#"  # before the mark of a question, in the value of a button
ASKED = "An approver was notified: {tools}. I continue as soon as they have answered."
HIDDEN = (
    "Approvers see the whole call in a direct chat with me, by /approvals, or where the gateway runs, by the command "
    "approvals."
)


class Place(NamedTuple):
    """A possible place of a question; in a chat of several people the arguments stay hidden."""

    address: Address
    is_private: bool


class Approvers(msgspec.Struct, frozen=True):
    """The people who may approve what others want, to be reached within `reach` seconds, and the chats with them."""

    access: AccessControl
    list_direct_chats: Callable[[], Sequence[Address]]
    list_homes: Callable[[], Sequence[Address]]  # also of networks that are not served yet
    reach: float

    def list_places(self, request: ApprovalRequest) -> list[Place]:
        """List the places for a request in order."""
        here, direct = request.address, self.list_direct_chats()

        def is_far(at: Address) -> tuple[bool, bool]:
            return at.platform != here.platform, at.served_as != here.served_as

        places = [Place(address, is_private=True) for address in sorted(direct, key=is_far)]
        others = sorted({*self.list_homes()} - {*direct}, key=lambda at: (is_far(at), at.served_as))
        public = (Place(address, is_private=False) for address in others)
        # People of the page have no other place.
        named = [Address(*who) for who in self.access.list_approvers() if who[0] == WEB and who[1] != "owner"]
        return [*places, *public, *(Place(address, is_private=True) for address in named)]


def make_question(request: ApprovalRequest, turn: OpenTurn, place: Place, number: str) -> Reply:
    """Make the question for an approver who did not ask themself."""
    who, calls = LiteralText("A person wants this:", describe_sender(request)), turn.calls[request.name]
    if place.is_private:
        shown = (who, *show_calls(turn.questions[request.name], calls), LiteralText(APPROVAL_END))
    else:
        shown = (
            who,
            LiteralText("They want to use:", show_signs(", ".join(dict.fromkeys(call.tool for call in calls)))),
            LiteralText(HIDDEN),
        )
    buttons = make_answer_buttons(request.mark, can_last=False)
    return Reply(number, place.address, to_markdown(shown), buttons=buttons, literals=shown)


def question_token_of(turn_id: str, question: str) -> str:
    """Return a short name that is unique to the question: an old button must not answer the next one."""
    return subjects.token_of(f"{turn_id}:{question}")[:12]


def make_answer_buttons(mark: str, *, can_last: bool) -> tuple[Button, ...]:
    """Make the buttons with the answers to the question with this mark."""
    longer = (("For this session", "/approve session"), ("Always", "/approve always")) if can_last else ()
    answers = (("Yes", "/approve"), *longer, ("No", "/deny"))
    return tuple(Button(label, f"{command} {QUESTION_SIGN}{mark}") for label, command in answers)


def show_request(request: ApprovalRequest, turn: OpenTurn) -> str:
    """Return a request as Markdown for an approver's own chat; foreign text in it is literal."""
    shown = show_calls(turn.questions[request.name], turn.calls[request.name])
    sign = f"{QUESTION_SIGN}{request.mark}"
    end = LiteralText(f"/approve {sign} lets it run this once, /deny {sign} refuses it.")
    return to_markdown((LiteralText("A person wants this:", describe_sender(request)), *shown, end))


def describe_answer(answered: records.QuestionAnswered) -> str:
    """Describe the end of a question."""
    if answered.answer is None:
        return "No answer came in time."
    if not answered.by:
        return UNSHOWN if answered.answer == UNSHOWN else UNREACHABLE
    platform, _, user = answered.by.partition(":")
    name = as_plain_name(answered.by_name)
    who = f"{name} ({platform} {user})" if name else f"{platform} {user}"
    return f"{'Allowed' if is_yes(answered.answer) else 'Refused'} by {who}."


def describe_sender(request: ApprovalRequest) -> str:
    """Describe the person who wants it, and the place."""
    at = request.address
    if not request.is_attended:
        return f"Unattended work ({as_plain_name(request.user_id) or at.platform})"
    where = "" if at.chat_type == "dm" else f", in {at.chat_type} {at.chat_id}"
    return f"{as_plain_name(request.user_name) or 'Somebody'} ({at.platform} {request.user_id}{where})"


def describe_tools(calls: Sequence[AskedCall]) -> str:
    """List the names of the tools, each once."""
    return ", ".join(dict.fromkeys(f"`{as_plain_name(call.tool)}`" for call in calls))


def as_plain_name(text: str) -> str:
    """Return a foreign name without anything that could act or pass for more."""
    return " ".join("".join(sign for sign in text if sign.isalnum() or sign in " -.:_").split())[:60]
