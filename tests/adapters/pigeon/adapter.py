"""The loft at work: a letter is a file whose name is its id, and whose text is what was said by P1."""

from pathlib import Path

import anyio

from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.messages import Address, Message, Reply
from gateway.outbox import DoubtPolicy
from tests.adapters.pigeon.settings import PigeonSettings

PAUSE = 0.02


class PigeonTransport:
    """Writes each reply into a file of its own."""

    platform = "pigeon"
    doubt: DoubtPolicy = "resend"
    can_edit = False

    def __init__(self, loft: Path) -> None:
        self._loft = loft

    def parts(self, _reply: Reply) -> int:
        return 1

    def texts(self, _reply: Reply) -> int:
        return 1

    async def send(self, reply: Reply, _part: int, _nonce: str) -> tuple[str, ...]:
        (self._loft / f"{reply.id}.out").write_text(reply.text)
        return (reply.id,)

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """A letter that flies stays as it is."""

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None:
        """Likewise."""

    async def find(self, _reply: Reply, _part: int, _nonce: str) -> tuple[str, ...] | None:
        return None


class PigeonAdapter:
    """Fills `Adapter`."""

    def __init__(self, settings: PigeonSettings, context: AdapterContext) -> None:
        self._loft = Path(settings.loft)
        self._context = context

    async def serve(self, presence: Presence) -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._context.parts.outbox.serve_platform, PigeonTransport(self._loft))
            presence.up("the loft is open")
            while True:
                for letter in sorted(self._loft.glob("*.in")):
                    message = Message(letter.stem, Address("pigeon", "P1"), "P1", letter.read_text())
                    await self._context.receive(message, bot="loft")
                    letter.unlink()
                    presence.received()
                await anyio.sleep(PAUSE)


ADAPTER = PigeonAdapter
