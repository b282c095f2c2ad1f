"""What the outbox needs of a chat network: parts that can be sent, and if the network can, edited and found again."""

from typing import Literal, Protocol, TypeAlias

from gateway.messages import Address, Reply

DoubtPolicy: TypeAlias = Literal["none", "resend", "drop", "nonce", "lookup"]


class Transport(Protocol):
    """A network's sending end. What fails is an `AdapterError`: permanent, or with the network's own `retry_after`.

    `doubt` says what is done about a part of which nobody knows whether it arrived, because the process died in the
    very call: send it again, let it be, send it again under the same nonce (the network knows it), or look for it.
    Where the call does nothing that anybody could see twice there is no doubt (`none`), and no `Intent` before it.
    """

    @property
    def platform(self) -> str: ...

    @property
    def doubt(self) -> DoubtPolicy: ...

    @property
    def can_edit(self) -> bool:
        """Whether an answer can be shown while it is written, by editing what was sent."""
        ...

    def parts(self, reply: Reply) -> int:
        """Into how many messages the network splits this reply; the same at every call."""
        ...

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        """Send one part; the network's ids of what appeared. The nonce is the part's own over all attempts."""
        ...

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        """Make what was sent show this part of this reply."""
        ...

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None: ...

    async def find(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...] | None:
        """The ids of a part that did arrive, or None; asked only where `doubt` is `lookup`."""
        ...
