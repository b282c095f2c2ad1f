"""The memory of recent messages."""

from gateway.adapters.shared.incoming import MOST, RecentMessages
from tests.spine import message


def test_what_was_said_long_ago_is_forgotten() -> None:
    recent = RecentMessages()
    for number in range(MOST + 1):
        recent.note(message(" how   do\nI ", user=f"person{number}", id=str(number)))
    assert recent.author("0") == ""
    assert (recent.author("1"), recent.title("1")) == ("person1", "how do I")
