"""Retries, and other models if one does not answer: until the first word has arrived, and not after it.

A text that the person has partly read cannot start again unnoticed; a later failure is an error of the turn, which
hooks may answer with a Retry.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing

import anyio
import msgspec
from msgspec import structs

from gateway.agent.model import Chunk, Model, ModelRequest
from gateway.backoff import Backoff
from gateway.config.settings import ModelSettings
from gateway.errors import ModelError

log = logging.getLogger(__name__)

RETRYABLE_KINDS = frozenset({"rate", "overload", "network", "timeout", "response"})
FINAL_KINDS = frozenset({"filter", "script"})
DEFAULT_TRIES = ModelSettings().retries + 1
BACKOFF = Backoff(0.5, 30.0, 0.5, 1.0)


class RetryPolicy(msgspec.Struct, frozen=True):
    """The number of tries of one model, and the pauses between them."""

    tries: int = DEFAULT_TRIES
    backoff: Backoff = BACKOFF

    def pause_after(self, failures: int, asked: float | None) -> float:
        """Return the seconds before the next try; the endpoint's wish counts, within limits."""
        return max(self.backoff.pause_after(failures), min(asked or 0.0, self.backoff.longest))


class FallbackModel(msgspec.Struct, frozen=True):
    """The first of these models that answers. Another name for the model holds for the first alone."""

    models: tuple[Model, ...]
    patience: RetryPolicy = RetryPolicy()

    @property
    def name(self) -> str:
        return self.models[0].name

    async def warm(self) -> None:
        for model in self.models:
            if warm := getattr(model, "warm", None):
                await warm()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Stream the answer of the first model that gives one, or raise the last error."""
        failure: ModelError | None = None
        for number, model in enumerate(self.models):
            asked = request if number == 0 else structs.replace(request, name="")
            for failures in range(1, self.patience.tries + 1):
                has_begun = False
                try:
                    async with aclosing(model.stream(asked)) as chunks:  # type: ignore[type-var]  # async generators
                        async for chunk in chunks:
                            has_begun = True
                            yield chunk
                    return
                except ModelError as error:
                    if has_begun or error.kind in FINAL_KINDS:
                        raise
                    failure = error
                if failure.kind not in RETRYABLE_KINDS or failures == self.patience.tries:
                    break
                seconds = self.patience.pause_after(failures, failure.retry_after)
                log.info("the model %s failed (%s: %s); again in %.1f s", model.name, failure.kind, failure, seconds)
                await anyio.sleep(seconds)
            for other in self.models[number + 1 : number + 2]:
                log.warning("the model %s does not answer (%s); falling back to %s", model.name, failure, other.name)
        assert failure
        raise failure
