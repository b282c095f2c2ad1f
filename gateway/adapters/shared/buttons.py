"""What a button carries where the network hands it back unread: its value, and who is asked. So it needs no memory."""

from gateway.errors import AdapterError
from gateway.messages.message import Button

SEPARATOR = "|"


def encode_button(button: Button, asked: str, longest: int, network: str) -> str:
    """The value for the person `asked`; empty: for everybody there.

    Raises:
        AdapterError: that is longer than the network carries.
    """
    carried = f"{button.value}{SEPARATOR}{asked}"
    if len(carried) > longest:
        raise AdapterError(f"the button {button.label!r} carries more than {network} takes", permanent=True)
    return carried


def decode_button(carried: object) -> tuple[str, str]:
    """The value of the button that was pressed, and who was asked."""
    value, _, asked = str(carried).rpartition(SEPARATOR)
    return value, asked
