"""The verbs of the running gateway with their answers, for the socket and the page.

A caller has a role (`gateway.records.activity.CALLER`), and each verb needs a role. Admins and owners see the whole
answer. Operators see only the fields that the row of the verb shows: no words of people, models and tools, and no
field that the row does not name.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from inspect import iscoroutinefunction, signature
from typing import Any, TypeAlias

import anyio
import msgspec

from gateway.adapters import answers as adapter_answers
from gateway.control.server import AnswerVerb, VerbAnswer
from gateway.daemon.answers import gateway, home, hooks, jobs, networks, people, port, proposals, questions
from gateway.daemon.reload import ReloadConfiguration
from gateway.daemon.status import StatusReport
from gateway.daemon.verb_activity import write_refusal, write_verb
from gateway.daemon.verb_table import VERBS
from gateway.errors import AccessError, GatewayError, RoleRefused
from gateway.figures import answers as figure_answers
from gateway.hooks import answers as hook_answers
from gateway.messages.roles import is_admin, rank_of
from gateway.records import answers as activity_answers
from gateway.records.activity import CALLER, OWNER, Activity
from gateway.sessions import answers as session_answers
from gateway.usage import answers as usage_answers
from gateway.verbs import Notify, Verb, cut_answer
from gateway.web import answers as port_answers

GIVEN = ("params", "notify")  # parameters that come with a request; earlier parameters are parts of the gateway

Answer: TypeAlias = Callable[..., Awaitable[Any]]
FindPart: TypeAlias = Callable[[str], Any]
Clean: TypeAlias = Callable[[Any], Any]

OF_ROOMS = (
    adapter_answers,
    hook_answers,
    activity_answers,
    session_answers,
    usage_answers,
    figure_answers,
    port_answers,
)
OF_SEVERAL = (gateway, home, hooks, jobs, networks, people, port, proposals, questions)
ANSWERS: Mapping[str, Answer] = {
    name.replace("_", ".", 1): answer
    for module in (*OF_ROOMS, *OF_SEVERAL)
    for name, answer in vars(module).items()
    if iscoroutinefunction(answer) and answer.__module__ == module.__name__ and not name.startswith("_")
}
"""The functions by the names of their verbs."""


def build_verbs(find: FindPart, reload: ReloadConfiguration | None = None) -> Mapping[str, VerbAnswer]:
    """Return the verbs by name, each with the function that answers it. `find` returns a part of the gateway by name.

    `reload` reads the configuration again; without it the gateway has no verb `reload`.
    """
    more = {"reload_configuration": reload, "status_report": StatusReport(find("bind"))}
    activity, redactor = find("activity"), find("redactor")

    def find_part(name: str) -> Any:
        return more[name] if name in more else find(name)

    def clean(said: Any) -> Any:
        return redactor.clean_all(msgspec.to_builtins(said, enc_hook=str))

    wanted = (verb for verb in VERBS.values() if reload or verb.name != "reload")
    return {
        verb.name: restrict_verb(verb, bind_answer(ANSWERS[verb.name], find_part), activity, clean) for verb in wanted
    }


def bind_answer(answer: Answer, find_part: FindPart) -> AnswerVerb:
    """Return the answer bound to its parts, as a function of the parameters and the notifier of a request."""
    names = list(signature(answer).parameters)
    bound = partial(answer, *(find_part(name) for name in names if name not in GIVEN))
    count = sum(name in GIVEN for name in names)
    return bound if count == len(GIVEN) else lambda *given: bound(*given[:count])


def restrict_verb(verb: Verb, answer: AnswerVerb, activity: Activity, clean: Clean) -> VerbAnswer:
    """Return the verb with an answer that denies roles that are too low, and cuts its result for operators.

    Raises, when a caller asks:
        RoleRefused: the caller's role is too low; the activity has a record of the call.
    """
    rank = rank_of(verb.role)
    act = answer if verb.raw and verb.on is None else partial(_act, verb, answer, activity, clean)

    async def answer_by_role(params: Any, notify: Notify) -> Any:
        role = CALLER.get(OWNER).role
        if rank_of(role) < rank:
            await write_refusal(activity, verb.name)
            raise RoleRefused(f"`{verb.name}` is for a person with the role {verb.role}; yours is {role}")
        if is_admin(role):
            return await act(params, notify)

        async def tell(kind: str, told: Any) -> None:
            await notify(kind, cut_answer(told, verb.shown))

        try:
            return cut_answer(await act(params, tell), verb.shown)
        except GatewayError:  # the error may quote a hook, a tool or a person
            raise AccessError(f"`{verb.name}` failed; an admin can see why") from None

    return VerbAnswer(verb, answer_by_role)


async def _act(verb: Verb, answer: AnswerVerb, activity: Activity, clean: Clean, params: Any, notify: Notify) -> Any:
    """Answer the verb and record the call."""
    if verb.lasts:
        return await _answer_long(verb, answer, activity, params, notify)
    said = await answer(params, notify)
    await write_verb(activity, verb, params, said)
    return said if verb.raw else clean(said)


async def _answer_long(verb: Verb, answer: AnswerVerb, activity: Activity, params: Any, notify: Notify) -> Any:
    """Record the call when the answer begins, unless the gateway itself calls the verb, to feed its page.

    The answer does not wait for the record: you can watch events even if the journal cannot be written.
    """
    said, error = None, None
    async with anyio.create_task_group() as tasks:
        if CALLER.get(None):
            tasks.start_soon(write_verb, activity, verb, params, None)
        try:
            said = await answer(params, notify)
        except GatewayError as refusal:  # the task group would wrap the error into a group
            error = refusal
    if error:
        raise error
    return said
