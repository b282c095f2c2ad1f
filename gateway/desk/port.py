"""The desk at the port: programs on other machines ask with a key that `keys new NAME --as desk` made.

Claude Code itself posts an event to `/desk/claude` and reads JSON. The file of `connect --script` posts to `/desk` what
the command sends to the socket, and reads the same answer; by the token in its header it finds its question again.
"""

import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus

import anyio

from gateway.desk.call import DeskCall, decode_event
from gateway.desk.decision import Answer, Desk
from gateway.desk.programs import PROGRAMS, make_decision
from gateway.desk.room import LONGEST_BODY, format_answer, parse_first_line
from gateway.records.records import ProgramKey
from gateway.web.http_request import JSON, HttpRequest, HttpResponse
from gateway.web.program_keys import ProgramKeys
from gateway.web.request_body import WebRefusal

TOKEN = "x-desk-token"  # noqa: S105 - a header's name
BEGAN = "x-desk-began"
PATHS = "what asks here: POST /desk, and Claude Code itself at /desk/claude"
REVOKED = "this key was revoked"


async def answer_request(desk: Desk, keys: ProgramKeys, key: ProgramKey, request: HttpRequest) -> HttpResponse:
    """Answer a program that has this key. Raises WebRefusal."""
    if request.method != "POST":
        raise WebRefusal(HTTPStatus.METHOD_NOT_ALLOWED, PATHS, Allow="POST")
    call = await read_call(key, request)
    answer = await find_answer(desk, keys, key, request, call)
    if request.path == "/desk":
        return HttpResponse(body=format_answer(answer))
    text = make_decision("deny", answer.text) if answer.code else answer.text
    return HttpResponse(body=text.encode() or b"{}", content_type=JSON)


async def read_call(key: ProgramKey, request: HttpRequest) -> DeskCall:
    """Return the call of a request. Raises WebRefusal."""
    body = await request.body.read(LONGEST_BODY)
    asker = f"{key.name} {request.headers.get(TOKEN) or secrets.token_hex(16)}"
    try:
        match request.path:
            case "/desk":
                head, _, event = body.partition(b"\n")
                program, _, is_attended, length = parse_first_line(head)
                if len(event) != length:
                    raise ValueError(f"{len(event)} bytes of {length}")
                began = int(request.headers.get(BEGAN) or 0)
                return DeskCall(program, decode_event(event), asker, key.name, is_attended, began)
            case "/desk/claude":  # it does not say whether a person sits there
                return DeskCall(PROGRAMS["claude"], decode_event(body), asker, key.name, is_attended=False)
    except ValueError as error:
        raise WebRefusal(HTTPStatus.BAD_REQUEST, f"this is not an event of a program: {error}") from None
    raise WebRefusal(HTTPStatus.NOT_FOUND, PATHS)


async def find_answer(desk: Desk, keys: ProgramKeys, key: ProgramKey, request: HttpRequest, call: DeskCall) -> Answer:
    """Return the answer, unless the caller leaves or the key is revoked before; raises WebRefusal then."""
    found: Answer | None = None
    try:
        async with anyio.create_task_group() as tasks:
            for wait in (request.body.ended.wait, partial(keys.wait_revoked, key)):
                tasks.start_soon(stop_after, wait, tasks.cancel_scope)
            found = await desk.find_answer(call)
            tasks.cancel_scope.cancel()
    finally:
        if found is None:  # if the gateway stops, the question stays
            desk.questions.tasks.start_soon(desk.questions.withdraw, call)
    if found is None:
        raise WebRefusal(HTTPStatus.UNAUTHORIZED, REVOKED)
    return found


async def stop_after(wait: Callable[[], Awaitable[object]], scope: anyio.CancelScope) -> None:
    await wait()
    scope.cancel()
