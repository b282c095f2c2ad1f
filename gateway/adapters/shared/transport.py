"""The sending that networks share: each text in as many messages as it needs, then the files.

If the network allows it, files that belong together are one message, and a short text is the caption of the first ones.
A text that was shown while it was written stays its own message.

An answer has a limited number of messages: if its text needs more, the last one is a file with the whole text. The rest
of the text is not even rendered, so the longest text costs no more than the longest answer.
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
    """The base of the networks' transports.

    `render` makes the messages that show a text, of `limit` each; `show` makes the one message that shows a whole
    question, or None if it does not fit into one.
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
        self.is_native = settings.streaming == "auto"  # use the network's own way to show growing answers
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
        """Return True if the network may show previews of links; never for a question."""
        return self._link_previews and not reply.literals

    def can_caption(self, _text: TextT) -> bool:
        """Return True if this text can be the caption of files, in one message."""
        return False

    def can_join(self, _files: Sequence[OutboundFile], _more: OutboundFile) -> bool:
        """Return True if this file can go with these, in one message."""
        return False

    def can_show(self, part: MessagePart) -> bool:
        """Return True if the network can show this part natively, and not only in words."""
        return isinstance(part, self._native_parts)

    def part(self, reply: Reply, number: int) -> tuple[TextT | FileMessage[TextT], tuple[Button, ...]]:
        """Return one message: a piece of the text, or files; and the buttons, if they belong under it."""
        pieces, pressed = self._pieces(reply)
        return pieces[number], reply.buttons if number == pressed else ()

    def _pieces(self, reply: Reply) -> tuple[Sequence[TextT | FileMessage[TextT]], int]:
        """Return all messages, and the number of the one with the buttons.

        The file of a question comes first: if it cannot be sent, the buttons must not be sent either.
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
        """Return the native parts, and the reply without the words for them, if a hook has left those words."""
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
        """Join texts and files into as few messages as the network allows."""
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
        """Load a message: files with their bytes, and words for files that cannot be sent.

        Raises:
            AdapterError: a file cannot be sent, and the sender of this reply gets the error: it was sent by hand.
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
        """Return None: the network has no lookup, or it knows a repeated part by its nonce."""
        return None

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Translate the errors of a call, and note its success as a proof of the network.

        Raises:
            AdapterError: the call failed, or another gateway may serve the bot by now, and make the call.
        """
        self._presence.check_right()
        with self._errors.translated():
            yield
        self._presence.sent()

    def _lay_out(self, reply: Reply) -> tuple[Sequence[TextT], tuple[OutboundFile, ...]]:
        """Return the texts and the files of a reply.

        The layouts of the last two texts are kept: each part asks for them again, and a growing text for its earlier
        state.
        """
        if reply.text not in self._laid_out:
            texts = self._render(reply.text[: self._longest])
            whole: tuple[TextFile, ...] = ()
            if len(reply.text) > self._longest or len(texts) > self._max_parts:
                texts, whole = texts[: self._max_parts - 1], (TextFile("answer.md", reply.text),)
            remember(self._laid_out, reply.text, (texts, whole), 2)
        texts, whole = self._laid_out[reply.text]
        return texts, (*whole, *reply.attachments)


def can_join_text(group: FileMessage[TextT]) -> bool:
    """Return True if a text can join these files: not voice, nor the whole answer as a file, which repeats the text."""
    return not any(isinstance(one, TextFile) or one.kind == "voice" for one in group.files)


def group_of(file: OutboundFile) -> FileMessage[TextT]:
    return FileMessage((file,))


def write_question(literals: Sequence[LiteralText]) -> TextFile:
    """Write a question as a file: each text is indented below its words, so only our own lines begin at the edge."""
    lines = []
    for one in literals:
        lines += [one.words, *(f"{INDENT}{line}" for line in one.text.split("\n") if one.text), ""]
    return TextFile(QUESTION_FILE, "\n".join(lines))


def describe_file(literals: Sequence[LiteralText], file: TextFile) -> tuple[LiteralText, ...]:
    """Describe such a file for the chat; none of its texts is shown in part."""
    where = f"It is too long for one message. The whole of it is the file above ({len(file.text):,} characters)."
    return (LiteralText(literals[0].words), LiteralText(where), LiteralText(literals[-1].words))
