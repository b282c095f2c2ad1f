"""Sending, as far as it is alike: each text in as many messages as it needs, then each file in one of its own.

An answer becomes so many messages and no more: where its text needs more of them, the last one is a file with the whole
text in it. What is beyond that is not even looked at, so that the longest text costs what the longest answer costs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.files import OutboundFile, TextFile
from gateway.adapters.shared.network_errors import NetworkErrors
from gateway.config.platform_settings import PlatformSettings
from gateway.messages import Button, Reply

TextT = TypeVar("TextT")


class NetworkTransport(Generic[TextT]):
    """What all that fill `Transport` have. `render` makes of a text the messages that show it, of `limit` each."""

    def __init__(
        self,
        render: Callable[[str], list[TextT]],
        limit: int,
        errors: NetworkErrors,
        settings: PlatformSettings,
        presence: Presence,
    ) -> None:
        self.can_edit = settings.streaming != "off"
        self._render = render
        self._max_parts = settings.max_parts
        self._longest = settings.max_parts * limit
        self._errors = errors
        self._presence = presence
        self._last: tuple[str, list[TextT], tuple[TextFile, ...]] = ("", [], ())

    def parts(self, reply: Reply) -> int:
        texts, files = self._lay_out(reply)
        return len(texts) + len(files)

    def texts(self, reply: Reply) -> int:
        return len(self._lay_out(reply)[0])

    def part(self, reply: Reply, number: int) -> tuple[TextT | OutboundFile, tuple[Button, ...]]:
        """One message: a piece of the text, or a file; and the buttons, which stand under the end of the text."""
        texts, files = self._lay_out(reply)
        what = texts[number] if number < len(texts) else files[number - len(texts)]
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

    def _lay_out(self, reply: Reply) -> tuple[list[TextT], tuple[OutboundFile, ...]]:
        """The texts and the files of a reply. The last text is remembered: each of its parts asks for it anew."""
        if self._last[0] != reply.text:
            texts = self._render(reply.text[: self._longest])
            if len(reply.text) <= self._longest and len(texts) <= self._max_parts:
                self._last = (reply.text, texts, ())
            else:
                self._last = (reply.text, texts[: self._max_parts - 1], (TextFile("answer.md", reply.text),))
        _, texts, whole = self._last
        return texts, (*whole, *reply.attachments)
