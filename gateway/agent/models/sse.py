"""Server-sent events, as far as models use them: the data of each event, from bytes that come in any pieces."""

LONGEST_LINE = 16_000_000


class SseDecoder:
    """Feed it bytes; it gives the data of the events that are complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of each event that this piece completes. Raises ValueError when a line has no end."""
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST_LINE:
            raise ValueError("a line of the stream has no end")
        events = []
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data = []
        return events

    def rest(self) -> bytes:
        """What came without the end of an event, once the stream is over."""
        if self._rest.startswith(b"data:"):
            self._data.append(self._rest[5:].strip())
            self._rest = b""
        return b"\n".join(self._data) or self._rest
