"""Sending, as far as it is alike: each text in as many messages as it needs, then the files.

Where the network can, files that go together are one message, and a text that is short enough stands with the first of
them. A text that was shown while it was written stays the message that it is.

An answer becomes so many messages and no more: where its text needs more of them, the last one is a file with the whole
text in it. What is beyond that is not even looked at, so that the longest text costs what the longest answer costs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Generic

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.files import (
    FileMessage,
    LoadedFile,
    LoadedMessage,
    OutboundFile,
    TextFile,
    TextT,
    read_attachment,
)
from gateway.adapters.shared.incoming import remember
from gateway.adapters.shared.network_errors import NetworkErrors
from gateway.config.platform_settings import PlatformSettings
from gateway.errors import AdapterError
from gateway.messages.message import Button, LiteralText, Reply
from gateway.messages.parts import MessagePart, take_words
from gateway.outbox.interface import LiveTransport

QUESTION_FILE = "question.txt"
INDENT = "    "
UNSENT = "A file is not sent: {}. On the machine of the gateway it is `{}`"


class NetworkTransport(LiveTransport, Generic[TextT]):
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
        self.is_native = settings.streaming == "auto"  # what a network has for answers that grow is used, too
        self._render = render
        self._show = show
        self._native_parts = settings.NATIVE_PARTS
        self._max_parts = settings.max_parts
        self._link_previews = settings.link_previews
        self._longest = settings.max_parts * limit
        self._errors = errors
        self._presence = presence
        self._laid_out: dict[str, tuple[Sequence[TextT], tuple[TextFile, ...]]] = {}

    def parts(self, reply: Reply) -> int:
        return len(self._pieces(reply)[0])

    def texts(self, reply: Reply) -> int:
        return sum(not isinstance(one, FileMessage) for one in self._pieces(reply)[0])

    def shows_links(self, reply: Reply) -> bool:
        """May the network show the pages behind its links? It never may for a question."""
        return self._link_previews and not reply.literals

    def can_caption(self, _text: TextT) -> bool:
        """Can this text stand with files, in one message?"""
        return False

    def can_join(self, _files: Sequence[OutboundFile], _more: OutboundFile) -> bool:
        """Can this file go with these, in one message?"""
        return False

    def can_show(self, part: MessagePart) -> bool:
        """Can this be shown as what it is, and not only in words?"""
        return isinstance(part, self._native_parts)

    def part(self, reply: Reply, number: int) -> tuple[TextT | FileMessage[TextT], tuple[Button, ...]]:
        """One message: a piece of the text, or files; and the buttons, which stand under the end of the text."""
        pieces, pressed = self._pieces(reply)
        return pieces[number], reply.buttons if number == pressed else ()

    def _pieces(self, reply: Reply) -> tuple[Sequence[TextT | FileMessage[TextT]], int]:
        """All that is sent, and the number of what has the buttons.

        The file of a question comes first: where it cannot be sent, nobody is to have the buttons.
        """
        if reply.parts:
            reply, shown = self._take_parts(reply)
            pieces, pressed = self._pieces(reply)
            return [*pieces, *(FileMessage((), part=one) for one in shown)], pressed
        if not reply.literals:
            texts, files = self._lay_out(reply)
            if reply.buttons:
                return [*texts, *map(group_of, files)], max(len(texts) - 1, 0)
            return self._join(texts, files, keeps_texts=reply.is_streamed), 0
        if (whole := self._show(reply.literals)) is not None:
            return [whole, *map(group_of, reply.attachments)], 0
        file = write_question(reply.literals)
        pointer = self._show(describe_file(reply.literals, file))
        assert pointer is not None, "a few words of ours fit everywhere"
        return [group_of(file), pointer, *map(group_of, reply.attachments)], 1

    def _take_parts(self, reply: Reply) -> tuple[Reply, list[MessagePart]]:
        """What is shown as what it is, and the reply without the words for that, where a hook has left them."""
        text, shown = reply.text, list[MessagePart]()
        for one in reversed(reply.parts):
            if not self.can_show(one) or (left := take_words(text, one)) is None:
                break
            text = left
            shown.insert(0, one)
        return replace(reply, text=text, parts=()), shown

    def _join(
        self, texts: Sequence[TextT], files: Sequence[OutboundFile], *, keeps_texts: bool
    ) -> list[TextT | FileMessage[TextT]]:
        """As few messages as the network lets it be."""
        groups = list[FileMessage[TextT]]()
        for file in files:
            if groups and self.can_join(groups[-1].files, file):
                groups[-1] = FileMessage((*groups[-1].files, file))
            else:
                groups.append(FileMessage((file,)))
        if texts and groups and not keeps_texts and can_join_text(groups[0]) and self.can_caption(texts[-1]):
            return [*texts[:-1], FileMessage(groups[0].files, texts[-1]), *groups[1:]]
        return [*texts, *groups]

    async def load(
        self, reply: Reply, piece: TextT | FileMessage[TextT], largest: int, network: str
    ) -> LoadedMessage[TextT]:
        """What is sent of the reply: files with their bytes; where one cannot be sent, words for it.

        Raises:
            AdapterError: a file cannot be sent, and whoever sends it by hand is told so themself.
        """
        if not isinstance(piece, FileMessage):
            return LoadedMessage((), piece)
        if piece.part:
            return LoadedMessage((), None, part=piece.part)
        loaded, unsent = list[LoadedFile](), list[TextT]()
        for one in piece.files:
            try:
                name, data = await read_attachment(one, largest, network)
            except AdapterError as error:
                if isinstance(one, TextFile) or not reply.role:
                    raise
                unsent.append(self._render(UNSENT.format(error, one.path))[0])
            else:
                loaded.append(LoadedFile(name, one.kind, data))
        return LoadedMessage(tuple(loaded), piece.text, tuple(unsent))

    async def find(self, _reply: Reply, _part: int, _nonce: str) -> tuple[str, ...] | None:
        """Nobody asks a network that cannot be asked, or that knows a part by its nonce."""
        return None

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Around a call: what goes wrong is told in our words, and what does not proves the network.

        Raises:
            AdapterError: it went wrong, or another gateway may serve the bot by now, and make the call.
        """
        self._presence.check_right()
        with self._errors.translated():
            yield
        self._presence.sent()

    def _lay_out(self, reply: Reply) -> tuple[Sequence[TextT], tuple[OutboundFile, ...]]:
        """The texts and the files of a reply. Those of the last two texts are remembered: each part asks for them anew,
        and what grows for what it was before."""
        if reply.text not in self._laid_out:
            texts = self._render(reply.text[: self._longest])
            whole: tuple[TextFile, ...] = ()
            if len(reply.text) > self._longest or len(texts) > self._max_parts:
                texts, whole = texts[: self._max_parts - 1], (TextFile("answer.md", reply.text),)
            remember(self._laid_out, reply.text, (texts, whole), 2)
        texts, whole = self._laid_out[reply.text]
        return texts, (*whole, *reply.attachments)


def can_join_text(group: FileMessage[TextT]) -> bool:
    """Not beside what is heard, nor beside the whole of an answer, which says what the texts say."""
    return not any(isinstance(one, TextFile) or one.kind == "voice" for one in group.files)


def group_of(file: OutboundFile) -> FileMessage[TextT]:
    return FileMessage((file,))


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
