"""The loft at work: a letter is a file whose name is its id, and whose text is what was said by P1."""

from collections.abc import Sequence
from pathlib import Path

import anyio

from gateway.adapters import (
    Adapter,
    AdapterContext,
    AdapterError,
    AdapterHost,
    Address,
    DoubtPolicy,
    IncomingMessage,
    LiteralText,
    Message,
    NetworkErrors,
    NetworkTransport,
    Presence,
    Reply,
)

from .settings import PigeonSettings

PAUSE = 0.02
LIMIT = 100_000  # signs on one letter
LARGEST = 1_000_000


def show_literals(literals: Sequence[LiteralText]) -> str | None:
    """All of a question on one letter."""
    return "\n".join(f"{one.words}\n{one.text}".rstrip() for one in literals)


class PigeonTransport(NetworkTransport[str]):
    """Writes each message into a file of its own. A letter that is written twice is the same letter."""

    doubt: DoubtPolicy = "nonce"

    def __init__(self, settings: PigeonSettings, presence: Presence) -> None:
        errors = NetworkErrors((OSError,), lambda error: AdapterError(f"the loft: {error.strerror}"))
        super().__init__(lambda text: [text] if text.strip() else [], show_literals, LIMIT, errors, settings, presence)
        self.can_edit = False
        self._loft = Path(settings.loft)

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        piece, _buttons = self.part(reply, part)
        loaded = await self.load(reply, piece, LARGEST, "a pigeon")
        with self.calling():
            for number, text in enumerate(loaded.texts):
                (self._loft / f"{nonce}{number or ''}.out").write_text(text)
            for file in loaded.files:
                (self._loft / f"{nonce}-{Path(file.name).name}").write_bytes(file.data)
        return (nonce,)

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """A letter that flies stays as it is."""

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None:
        """Likewise."""


class PigeonAdapter:
    """Fills `Adapter`."""

    def __init__(self, settings: PigeonSettings, context: AdapterContext) -> None:
        self._settings = settings
        self._context = context

    async def serve(self, presence: Presence) -> None:
        loft = Path(self._settings.loft)
        host: AdapterHost[Path] = AdapterHost(self._context, presence, "loft")
        async with host.sending(PigeonTransport(self._settings, presence)):
            presence.up("the loft is open")
            while True:
                for letter in sorted(loft.glob("*.in")):
                    message = Message(letter.stem, Address("pigeon", "P1"), "P1", letter.read_text())
                    await host.take(IncomingMessage(message))
                    letter.unlink()  # only now: it is in the journal
                presence.answered()
                await anyio.sleep(PAUSE)


ADAPTER: type[Adapter] = PigeonAdapter
