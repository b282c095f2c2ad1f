"""Sending, as far as it is alike: each text in as many messages as it needs, then each file in one of its own.

An answer becomes so many messages and no more: where its text needs more of them, the last one is a file with the whole
text in it. What is beyond that is not even looked at, so that the longest text costs what the longest answer costs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.files import LoadedFile, OutboundFile, TextFile, read_attachment
from gateway.adapters.shared.network_errors import NetworkErrors
from gateway.config.platform_settings import PlatformSettings
from gateway.errors import AdapterError
from gateway.messages import Button, LiteralText, Reply

QUESTION_FILE = "question.txt"
INDENT = "    "
UNSENT = "A file is not sent: {}. On the machine of the gateway it is `{}`"

TextT = TypeVar("TextT")


class NetworkTransport(Generic[TextT]):
    """What all that fill `Transport` have.

    `render` makes of a text the messages that show it, of `limit` each; `show` of a question the one message that shows
    all of it, None where it does not fit into one.
    """

    def __init__(
        self,
        render: Callable[[str], Sequence[TextT]],
        show: Callable[[Sequence[LiteralText]], TextT | None],
        limit: int,
        errors: NetworkErrors,
        settings: PlatformSettings,
        presence: Presence,
    ) -> None:
        self.platform = presence.name
        self.can_edit = settings.streaming != "off"
        self._render = render
        self._show = show
        self._max_parts = settings.max_parts
        self._longest = settings.max_parts * limit
        self._errors = errors
        self._presence = presence
        self._last: tuple[str, Sequence[TextT], tuple[TextFile, ...]] = ("", [], ())

    def parts(self, reply: Reply) -> int:
        return len(self._pieces(reply)[0])

    def texts(self, reply: Reply) -> int:
        return len(self._lay_out(reply)[0])

    def part(self, reply: Reply, number: int) -> tuple[TextT | OutboundFile, tuple[Button, ...]]:
        """One message: a piece of the text, or a file; and the buttons, which stand under the end of the text."""
        pieces, pressed = self._pieces(reply)
        return pieces[number], reply.buttons if number == pressed else ()

    def _pieces(self, reply: Reply) -> tuple[Sequence[TextT | OutboundFile], int]:
        """All that is sent, and the number of what has the buttons.

        The file of a question comes first: where it cannot be sent, nobody is to have the buttons.
        """
        if not reply.literals:
            texts, files = self._lay_out(reply)
            return [*texts, *files], max(len(texts) - 1, 0)
        if (whole := self._show(reply.literals)) is not None:
            return [whole, *reply.attachments], 0
        file = write_question(reply.literals)
        pointer = self._show(describe_file(reply.literals, file))
        assert pointer is not None, "a few words of ours fit everywhere"
        return [file, pointer, *reply.attachments], 1

    async def load(self, reply: Reply, piece: TextT | OutboundFile, largest: int, network: str) -> LoadedFile | TextT:
        """What is sent of the reply: a text as it is, a file with its bytes; where it has none to send, words for it.

        Raises:
            AdapterError: a file cannot be sent, and whoever sends it by hand is told so themself.
        """
        if not isinstance(piece, OutboundFile):
            return piece
        try:
            name, data = await read_attachment(piece, largest, network)
        except AdapterError as error:
            if isinstance(piece, TextFile) or not reply.role:
                raise
            return self._render(UNSENT.format(error, piece.path))[0]
        return LoadedFile(name, piece.kind, data)

    async def find(self, _reply: Reply, _part: int, _nonce: str) -> tuple[str, ...] | None:
        """Nobody asks a network that cannot be asked, or that knows a part by its nonce."""
        return None

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Around a call: what goes wrong is told in our words, and what does not proves the network."""
        with self._errors.translated():
            yield
        self._presence.sent()

    def _lay_out(self, reply: Reply) -> tuple[Sequence[TextT], tuple[OutboundFile, ...]]:
        """The texts and the files of a reply. The last text is remembered: each of its parts asks for it anew."""
        if self._last[0] != reply.text:
            texts = self._render(reply.text[: self._longest])
            if len(reply.text) <= self._longest and len(texts) <= self._max_parts:
                self._last = (reply.text, texts, ())
            else:
                self._last = (reply.text, texts[: self._max_parts - 1], (TextFile("answer.md", reply.text),))
        _, texts, whole = self._last
        return texts, (*whole, *reply.attachments)


def write_question(literals: Sequence[LiteralText]) -> TextFile:
    """All of it as a file: each text below its words, and no line of it at the edge, where ours stand."""
    lines = []
    for one in literals:
        lines += [one.words, *(f"{INDENT}{line}" for line in one.text.split("\n") if one.text), ""]
    return TextFile(QUESTION_FILE, "\n".join(lines))


def describe_file(literals: Sequence[LiteralText], file: TextFile) -> tuple[LiteralText, ...]:
    """What stands in the chat below such a file; nothing of a text that does not stand there whole."""
    where = f"It is too long for one message. The whole of it is the file above ({len(file.text):,} characters)."
    return (LiteralText(literals[0].words), LiteralText(where), LiteralText(literals[-1].words))
