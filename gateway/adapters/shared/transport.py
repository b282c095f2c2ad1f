"""Sending, as far as it is alike: each text in as many messages as it needs, then each file in one of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.network_errors import NetworkErrors
from gateway.config.platform_settings import PlatformSettings
from gateway.messages import Attachment, Button, Reply

TextT = TypeVar("TextT")


class NetworkTransport(Generic[TextT]):
    """What all that fill `Transport` have. `render` makes of a text the messages that show it."""

    def __init__(
        self,
        render: Callable[[str], list[TextT]],
        errors: NetworkErrors,
        settings: PlatformSettings,
        presence: Presence,
    ) -> None:
        self.can_edit = settings.streaming != "off"
        self._render = render
        self._errors = errors
        self._presence = presence

    def parts(self, reply: Reply) -> int:
        return len(self._render(reply.text)) + len(reply.attachments)

    def part(self, reply: Reply, number: int) -> tuple[TextT | Attachment, tuple[Button, ...]]:
        """One message: a piece of the text, or a file; and the buttons, which stand under the end of the text."""
        texts = self._render(reply.text)
        what = texts[number] if number < len(texts) else reply.attachments[number - len(texts)]
        return what, reply.buttons if number == max(len(texts) - 1, 0) else ()

    async def find(self, _reply: Reply, _part: int, _nonce: str) -> tuple[str, ...] | None:
        """Nobody asks a network that cannot be asked, or that knows a part by its nonce."""
        return None

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Around a call: what goes wrong is told in our words, and what does not proves the network."""
        with self._errors.translated():
            yield
        self._presence.sent()
