"""Programs at `/v1`: authenticated by a key that names an agent, with a limit of calls at a time.

If a caller disconnects before its answer, its turn is stopped, unless the answer can be fetched later: from the session
of a user, or by repeating the `Idempotency-Key`. Revoking a key ends its running calls.
"""

import hashlib
import logging
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, TypeAlias

import anyio
import anyio.abc
import msgspec
from anyio.lowlevel import checkpoint

from gateway.errors import EngineError, GatewayError, unwrap_error
from gateway.records.records import ProgramCall, ProgramKey
from gateway.web.http_request import HttpRequest, HttpResponse, HttpStream, SendPiece, answer_json, keep_stream
from gateway.web.key_check import KeyCheck
from gateway.web.openai.calls import SOON, AnswerWatcher, CallAnswer, NewCall, ProgramCalls
from gateway.web.openai.chat import ChatRequest, ChatWords
from gateway.web.openai.error import QUOTA, CallRefusal, answer_error, describe_refusal
from gateway.web.openai.payload import check_user, parse_payload, read_payload
from gateway.web.openai.response import PREFIX, ResponseRequest, ResponseWords
from gateway.web.program_keys import ProgramKeys
from gateway.web.request_body import WebRefusal

log = logging.getLogger(__name__)

MOST_AT_ONCE = 16  # calls of one key
LONGEST_NAME = 255
STOP_SECONDS = 5.0
BEGIN_SECONDS = 10.0  # until then a stream has no status yet, and can be refused with one
EVENTS = "text/event-stream; charset=utf-8"
ASKED = "you can call /v1/chat/completions, /v1/responses, /v1/models"
WANTS_KEY = "an API key is required: hermes-gateway keys new NAME --as user --agent AGENT"
NO_AGENT = "this key speaks to no agent: hermes-gateway keys new NAME --as user --agent AGENT"
REVOKED = "this key was revoked"
NOT_NOW = "the journal takes nothing now; call again"
LEFT = "no caller waits for this answer any more"
FAILED = "the agent could not answer"
OVER_BUDGET = "a budget is used up"
NO_RETRY = {"x_should_retry": "false"}  # the agent has already retried

ListAgents: TypeAlias = Callable[[], frozenset[str]]

Words: TypeAlias = ChatWords | ResponseWords
"""An answer in the format of one of the two protocols: whole, or as the events of a stream."""
FindWords: TypeAlias = Callable[[ProgramCall], Words]


class ProgramServer(msgspec.Struct, eq=False):
    """Answers the requests under `/v1`."""

    _check: KeyCheck
    _keys: ProgramKeys
    _calls: ProgramCalls
    _agents: ListAgents
    running: Counter[str] = msgspec.field(default_factory=Counter)  # calls, by the name of their key

    async def answer(self, request: HttpRequest, peer: str) -> HttpResponse | HttpStream:
        """Answer a request. Every refusal has the shape that the clients read."""
        try:
            return await self._route(request, self._find_key(request, peer))
        except GatewayError as error:
            return answer_error(as_refusal(error))

    def _find_key(self, request: HttpRequest, peer: str) -> ProgramKey:
        """Return the key of a request; raises WebRefusal."""
        key = self._check.find(request, peer)
        if key is None:
            raise CallRefusal(HTTPStatus.UNAUTHORIZED, WANTS_KEY, WWW_Authenticate="Bearer")
        if not key.agent:
            raise CallRefusal(HTTPStatus.FORBIDDEN, NO_AGENT, code="no_agent")
        return key

    async def _route(self, request: HttpRequest, key: ProgramKey) -> HttpResponse | HttpStream:
        match request.path.split("/")[2:]:
            case ["models"]:
                check_method(request, "GET")
                models = [describe_model(key)] if key.agent in self._agents() else []
                return answer_json({"object": "list", "data": models})
            case ["models", name]:
                check_method(request, "GET")
                self._check_model(name, key)
                return answer_json(describe_model(key))
            case ["chat", "completions"]:
                check_method(request, "POST")
                return await self._begin(request, key, ChatRequest)
            case ["responses"]:
                check_method(request, "POST")
                return await self._begin(request, key, ResponseRequest)
            case ["responses", name]:
                check_method(request, "GET", "DELETE")
                return await self._show_response(request, key, name)
        what = f"{request.method} {request.path} not found; {ASKED}"
        raise CallRefusal(HTTPStatus.NOT_FOUND, what, code="unknown_url")

    async def _begin(
        self, request: HttpRequest, key: ProgramKey, kind: type[ChatRequest | ResponseRequest]
    ) -> HttpResponse | HttpStream:
        payload = await read_payload(request)
        asked = parse_payload(payload, kind)
        self._check_model(asked.model, key)
        asked.check(payload)
        prompt, user = asked.read_prompt(), check_user(asked.user)
        before = await self._calls.read_history(key, asked.previous, user) if asked.previous else ()
        name = request.headers.get("idempotency-key")
        call = NewCall(
            id=id_of_call(key, name),
            key=key,
            text=prompt.text,
            digest=digest_of(request.path, payload),
            history=() if user else (*before, *prompt.history),
            user=user,
            stored=asked.is_stored,
            is_named=name is not None,
        )
        return await self._answer(request, call, asked.make_words, is_stream=bool(asked.stream))

    async def _show_response(self, request: HttpRequest, key: ProgramKey, name: str) -> HttpResponse:
        """Return an earlier answer, while it is stored, or delete it."""
        watcher = await self._calls.find_stored(key, name.removeprefix(PREFIX))
        if request.method == "DELETE":
            if not watcher.call.user:
                await self._calls.stop(watcher)  # its session is its own, and no caller waits for it any more
            await self._calls.forget(watcher.call)
            return answer_json({"id": name, "object": "response", "deleted": True})
        answer = await watcher.find_answer()
        if answer:
            check_answer(answer)
        return answer_json(ResponseWords(watcher.call).answer(answer))

    async def _answer(
        self, request: HttpRequest, asked: NewCall, find_words: FindWords, *, is_stream: bool
    ) -> HttpResponse | HttpStream:
        """Begin a call and answer it; the program gets no byte before the call is in the journal."""
        if self.running[asked.key.name] >= MOST_AT_ONCE:
            what = f"{MOST_AT_ONCE} calls of this key are being answered already"
            raise CallRefusal(HTTPStatus.TOO_MANY_REQUESTS, what, Retry_After=SOON)
        with self._count(asked.key), anyio.CancelScope(shield=True):  # so that we know if it was begun
            watcher = await self._calls.begin(asked)
        words = find_words(watcher.call)
        async with self._attending(request, asked, watcher):
            await checkpoint()  # a caller that disconnected has left
            if not is_stream:
                answer = await watcher.wait_answer()
                check_answer(answer)
                return answer_json(words.answer(answer))
            with anyio.move_on_after(BEGIN_SECONDS):
                await watcher.wait_begun()
            if found := await watcher.find_answer():
                check_budget(found)
        return HttpStream(partial(self._tell, request, asked, watcher, words), EVENTS)

    async def _tell(
        self, request: HttpRequest, asked: NewCall, watcher: AnswerWatcher, words: Words, send: SendPiece
    ) -> None:
        """Send the answer as it is written; a failure becomes an event, since the status has been sent."""
        try:
            async with self._attending(request, asked, watcher) as tasks, aclosing(watcher.follow()) as told:
                tasks.start_soon(keep_stream, send)
                await send(words.begin())
                async for piece in told:
                    if isinstance(piece, CallAnswer):
                        check_answer(piece)
                    await send(words.end(piece) if isinstance(piece, CallAnswer) else words.add(piece))
        except GatewayError as error:
            await send(words.fail(describe_refusal(as_refusal(error))))

    @asynccontextmanager
    async def _attending(
        self, request: HttpRequest, asked: NewCall, watcher: AnswerWatcher
    ) -> AsyncGenerator[anyio.abc.TaskGroup, None]:
        """Check inside the block that the caller is connected and the key is valid.

        Raises:
            CallRefusal: one of them ended.
        """
        why: list[CallRefusal] = []

        async def end(wait: Callable[[], Awaitable[Any]], status: HTTPStatus, reason: str) -> None:
            await wait()
            why.append(CallRefusal(status, reason))
            tasks.cancel_scope.cancel()

        try:
            with self._count(asked.key):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(end, request.body.ended.wait, HTTPStatus.REQUEST_TIMEOUT, LEFT)
                    is_revoked = partial(self._keys.wait_revoked, asked.key)
                    tasks.start_soon(end, is_revoked, HTTPStatus.UNAUTHORIZED, REVOKED)
                    yield tasks
                    tasks.cancel_scope.cancel()
        except BaseExceptionGroup as error:
            raise unwrap_error(error) from None
        except anyio.get_cancelled_exc_class():
            await self._stop(asked, watcher)
            raise
        if why:
            await self._stop(asked, watcher)
            raise why[0]

    async def _stop(self, asked: NewCall, watcher: AnswerWatcher) -> None:
        """Stop a call whose answer no caller can fetch, or may."""
        if asked.key not in self._keys.keys or not (asked.user or asked.is_named):
            with anyio.move_on_after(STOP_SECONDS, shield=True):
                await self._calls.stop(watcher)

    @contextmanager
    def _count(self, key: ProgramKey) -> Iterator[None]:
        self.running[key.name] += 1
        try:
            yield
        finally:
            self.running[key.name] -= 1

    def _check_model(self, model: str, key: ProgramKey) -> None:
        """Raise CallRefusal if the model is not the key's agent."""
        if model != key.agent or model not in self._agents():
            what = f"model {model[:100]!r} not found for this key; see /v1/models"
            raise CallRefusal(HTTPStatus.NOT_FOUND, what, param="model", code="model_not_found")


def check_method(request: HttpRequest, *allowed: str) -> None:
    """Raise CallRefusal for any other method."""
    if request.method not in allowed:
        what = f"{request.path} is asked by {' or '.join(allowed)}"
        raise CallRefusal(HTTPStatus.METHOD_NOT_ALLOWED, what, Allow=", ".join(allowed))


def check_budget(answer: CallAnswer) -> None:
    """Raise CallRefusal if a budget is used up, so that no model was called."""
    if answer.is_over_budget:
        raise CallRefusal(HTTPStatus.TOO_MANY_REQUESTS, answer.text or OVER_BUDGET, code=QUOTA, **NO_RETRY)


def check_answer(answer: CallAnswer) -> None:
    """Raise CallRefusal if the agent gave no answer."""
    check_budget(answer)
    if answer.is_failed:
        what = answer.text or FAILED
        raise CallRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, what, code=f"turn_{answer.status}", **NO_RETRY)


def as_refusal(error: GatewayError) -> WebRefusal:
    """Make the refusal for an error; that of an ill journal goes to the log alone, because it names files."""
    if isinstance(error, WebRefusal):
        return error
    if isinstance(error, EngineError):
        log.warning("a call of a program was not answered: %s", error)
    what = NOT_NOW if isinstance(error, EngineError) else str(error)
    return CallRefusal(HTTPStatus.SERVICE_UNAVAILABLE, what, Retry_After=SOON)


def id_of_call(key: ProgramKey, name: str | None) -> str:
    """Return the call's id: the same for the same name by a program.

    Raises:
        CallRefusal: the name is invalid.
    """
    if name is None:
        return uuid.uuid4().hex
    if not (0 < len(name) <= LONGEST_NAME):
        raise CallRefusal(HTTPStatus.BAD_REQUEST, f"an Idempotency-Key has 1 to {LONGEST_NAME} characters")
    return hashlib.sha256(f"{key.name}:{name}".encode()).hexdigest()[:32]


def digest_of(path: str, given: dict[str, Any]) -> str:
    """Return a digest of the request, independent of the order of its fields."""
    return hashlib.sha256(path.encode() + msgspec.json.encode(given, order="sorted")).hexdigest()


def describe_model(key: ProgramKey) -> dict[str, Any]:
    return {"id": key.agent, "object": "model", "created": int(key.at), "owned_by": "hermes-gateway"}
