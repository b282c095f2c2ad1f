"""The keys of a person at a terminal. Apart from chat.py, since the line editor is heavy to import."""

from contextlib import AbstractContextManager, nullcontext

from prompt_toolkit.input.vt100 import Vt100Input


class Keyboard(Vt100Input):
    """Stays raw while a line is printed above the prompt.

    The editor would give the terminal back to its own line discipline meanwhile, which takes a Ctrl-D for itself.
    """

    def cooked_mode(self) -> AbstractContextManager[None]:
        return nullcontext()
