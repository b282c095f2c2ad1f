"""Errors of the library that speaks with one network: raised in our words, or written into the log and passed over."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gateway.errors import AdapterError, unwrap_error


def make_rate_limit_error(network: str, seconds: float) -> AdapterError:
    """Make the error of a network that wants no call for so long."""
    return AdapterError(f"{network} wants {seconds:.0f} s of silence (too many messages)", retry_after=seconds)


def read_seconds(headers: Mapping[str, str], absent: float) -> float:
    """Return the seconds that an answer names in its head; `absent`: where it names none, or none that is a number."""
    try:
        return float(headers.get("Retry-After", absent))
    except ValueError:
        return absent


class NetworkErrors:
    """All that a library raises where its network is what is wrong, and `translate`, which says it in our words."""

    def __init__(self, kinds: tuple[type[Exception], ...], translate: Callable[[Any], AdapterError]) -> None:
        self._kinds = kinds
        self._grouped: tuple[type[Exception], ...] = (ExceptionGroup, *kinds)
        self._translate = translate

    @contextmanager
    def translated(self) -> Iterator[None]:
        """For what has to succeed; of a group of errors the one that counts is raised.

        Raises:
            AdapterError: in place of what the library raised, whose words may hold a token.
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
        """For what is worth no error: `what` failed is written by `log`, a method of a logger, with the reason.

        `only` names the errors for which that holds; without it, all of the library's.
        """
        kinds = (only,) if only else self._kinds
        try:
            yield
        except kinds as error:
            log(f"{what}: %s", *args, self._translate(error))
