"""The data of a button: its value, and the person it is meant for. The network returns it unread, so none is stored."""

from gateway.errors import AdapterError
from gateway.messages.message import Button

SEPARATOR = "|"


def encode_button(button: Button, asked: str, longest: int, network: str) -> str:
    """Encode the value for the person `asked`; "": for all people there.

    Raises:
        AdapterError: the result is longer than the network allows.
    """
    carried = f"{button.value}{SEPARATOR}{asked}"
    if len(carried) > longest:
        raise AdapterError(f"the button {button.label!r} carries more than {network} takes", permanent=True)
    return carried


def decode_button(carried: object) -> tuple[str, str]:
    """Return the value of the pressed button, and the person it was meant for."""
    value, _, asked = str(carried).rpartition(SEPARATOR)
    return value, asked
