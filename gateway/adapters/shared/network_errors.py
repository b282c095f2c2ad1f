"""The errors of a network's library: raised in our words, or logged and ignored."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gateway.errors import AdapterError, unwrap_error


def make_rate_limit_error(network: str, seconds: float) -> AdapterError:
    """Make the error of a network that wants no calls for some seconds."""
    return AdapterError(f"{network} wants {seconds:.0f} s of silence (too many messages)", retry_after=seconds)


def read_seconds(headers: Mapping[str, str], absent: float) -> float:
    """Return the seconds in the headers of an answer; `absent` if they are missing or not a number."""
    try:
        return float(headers.get("Retry-After", absent))
    except ValueError:
        return absent


class NetworkErrors:
    """The errors of a library that are its network's fault, and `translate`, which puts them in our words."""

    def __init__(self, kinds: tuple[type[Exception], ...], translate: Callable[[Any], AdapterError]) -> None:
        self._kinds = kinds
        self._grouped: tuple[type[Exception], ...] = (ExceptionGroup, *kinds)
        self._translate = translate

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate the errors of a block that must succeed; a group of errors is reduced to the one that counts.

        Raises:
            AdapterError: in place of the library's error, whose words may hold a token.
        """
        try:
            yield
        except self._grouped as raised:
            error = unwrap_error(raised)
            raise self._translate(error) if isinstance(error, self._kinds) else error from None

    @contextmanager
    def logged(
        self, log: Callable[..., None], what: str, *args: object, only: type[Exception] | None = None
    ) -> Iterator[None]:
        """Log an error of a block that may fail: `what` failed, and the reason, by `log`, a method of a logger.

        `only` limits this to some errors; without it, all of the library's are logged.
        """
        kinds = (only,) if only else self._kinds
        try:
            yield
        except kinds as error:
            log(f"{what}: %s", *args, self._translate(error))
