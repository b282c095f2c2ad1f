"""The gateway's own commands: a function for each, and the table of their rows at the end.

Each function gets a call and returns its result. Commands that wait for their place in the lane return the records that
change the session. Urgent commands act at once, on the running turn if there is one, and return only a text.
"""

import re
from collections.abc import Mapping
from functools import partial

import msgspec
from msgspec import structs

from gateway.chats.rules import CHANGEABLE
from gateway.dispatcher import command_names, pairing_commands
from gateway.dispatcher.chat_settings import run_settings_command
from gateway.dispatcher.commands import (
    Command,
    CommandChoice,
    CommandOption,
    CommandResult,
    ParsedCommand,
    parse_command,
    say_error,
)
from gateway.dispatcher.context import OWN_PLATFORMS, SILENT_PLATFORMS, DispatcherContext
from gateway.dispatcher.job_commands import JOBS
from gateway.dispatcher.usage_report import describe_usage
from gateway.errors import AccessError, AdapterError, HookError, SessionError
from gateway.events import is_yes
from gateway.events.outcomes import find_refusal
from gateway.hooks.scope import HookScope
from gateway.lanes.lanes import Lanes
from gateway.messages.authors import can_command, describe_hook
from gateway.messages.message import Message
from gateway.messages.roles import Role, is_admin, rank_of
from gateway.questions.approval_requests import ApprovalRequests
from gateway.questions.places import QUESTION_SIGN, question_token_of, show_request
from gateway.questions.proposals import answer_proposal, show_proposals
from gateway.questions.rights import as_answer, find_rights, is_approval
from gateway.questions.tool_approvals import approvals_of, run_approvals_command
from gateway.records.records import ActivityRecord, TurnRecord
from gateway.sessions import transitions
from gateway.sessions.keys import session_key_of
from gateway.sessions.session import Session
from gateway.sessions.transitions import QUOTES, SPOKEN
from gateway.yaml_source.units import format_count

VOICE = re.compile(r"(?P<spoken>on|off)?(?:(?:^| )quote (?P<quote>on|off))?")
MOST_LISTED = 20
MOST_DIGITS = 9  # Python refuses a number of thousands of digits, and no session has that many turns
KEPT_SETTINGS = ("model", "approvals", QUOTES, SPOKEN)
APPROVE_ANSWERS = {"": "yes", "once": "yes", "session": "session", "always": "always"}
NOT_IN_GROUPS = (
    "Do not write a code into a group: this one had no effect. Write `/pairing approve CODE` to me in a "
    "direct message, or run `hermes-gateway pairing approve CODE` where the gateway runs."
)
INVITED_ALONE = "The first person who opens an invitation can use it: ask me for it in a direct message."
NOT_FOR_MANY = "A link to the page is for one person alone: ask me for it in a direct message."
NOT_FOR_USERS = "The page is for owners, admins and operators."
LINK = "{link}\nIt is valid once, for 60 seconds. The person who opens it acts as you, with your role ({role})."
NO_SUCH_HOOK = "The hook was not found, or its dead letters cannot be retried; /letters lists the hooks that have any."
NOT_BY_HOOKS = (
    "/{command} is not for hooks, and the hook `{hook}` put it in place of what you wrote. To run it, type /{command}."
)
ONLY_ONCE = "Approved, this once: a longer approval is possible only for your own request."


class CommandCall(msgspec.Struct, frozen=True):
    """A command that a person typed, as the hooks left it, with its message and session."""

    typed: ParsedCommand
    message: Message
    role: Role
    session: Session
    context: DispatcherContext
    lanes: Lanes
    by: str = ""  # the hook that replaced the person's words by this command

    @property
    def args(self) -> str:
        return self.typed.args


def find_command(context: DispatcherContext, word: str, role: Role) -> Command | None:
    """Return the command of this name or alias; None if the name is unknown, or not available to this role."""
    return _check_rights(context, context.commands.get(word), role)


def is_command(context: DispatcherContext, message: Message) -> bool:
    """Return True if the message is a command that its sender may use."""
    typed, role = parse_command(message.text), context.access.find_role(message)
    return bool(typed and role and find_command(context, typed.word, role))


async def wait_for_command(context: DispatcherContext, word: str, role: Role) -> Command | None:
    """Work like `find_command`, but wait for an unknown command while plugins start."""
    return _check_rights(context, await context.commands.find(word), role)


def _check_rights(context: DispatcherContext, command: Command | None, role: Role) -> Command | None:
    if command is None or is_admin(role) or command.rights == "everyone":
        return command
    listed = context.access.rules.user_commands
    is_open = listed is None or command.rights == "operator"  # the list applies to users
    is_allowed = (is_open and command.is_for(role)) or (listed is not None and command.name in listed)
    return command if is_allowed else None


async def suggest_names(
    context: DispatcherContext, message: Message, word: str, option: str, given: Mapping[str, object]
) -> list[CommandChoice]:
    """Suggest values for an option of a command while a person types it.

    The suggestions show a person no more than the command would. The gateway does not call hooks for unfinished input:
    if a hook handles the command or its answer, there are no suggestions.
    """
    role = context.access.find_role(message)
    command = find_command(context, word, role) if role else None
    found = next((one for one in command.options if one.name == option), None) if command else None
    if command is None or found is None or found.list_names is None:
        return []
    if _is_hooked(context, command):
        return []
    session = await context.sessions.open(session_key_of(message, context.settings.keys))
    typed = str(given.get(option, "")).lower()
    names = await found.list_names(context, session, given)
    return [one for one in names if typed in f"{one.value} {one.about}".lower()]


def _is_hooked(context: DispatcherContext, command: Command) -> bool:
    """Return True if a hook handles the command or its answer."""
    events = ("message:received", f"command:{command.name}", "message:sending")
    return any(hook.intercepts for hook in context.registry.at(*events))


async def open_page_by_button(context: DispatcherContext, message: Message) -> str:
    """Return the link of `/open`, for a person who pressed a button instead.

    Raises:
        AccessError: the page is not available to this person, or a hook must decide first.
    """
    role = context.access.find_role(message)
    command = find_command(context, "open", role) if role else None
    if role is None or command is None or rank_of(role) < rank_of("operator"):
        raise AccessError(NOT_FOR_USERS)
    if _is_hooked(context, command):
        raise AccessError("a hook has a say in that: write /open to the bot")
    link = await context.reports.open_page(role, message.sender)
    await write_activity(context, message, ActivityRecord(what="/open"))
    return link


def describe_unknown_command(context: DispatcherContext, word: str) -> str:
    near = context.commands.closest(word)
    near = None if near == word else near  # the command exists, but not for this person
    return f"Unknown command here: /{word}. " + (f"/{near}?" if near else "/help lists them.")


def parse_own_command(message: Message) -> ParsedCommand | None:
    """Return the command in a text whose author may use commands; None if the text is not a command."""
    return parse_command(message.text) if can_command(message.author) else None


async def run_command(call: CommandCall, command: Command, view: HookScope) -> CommandResult:
    """Run a command as its hooks left it. If a hook replaced the command, the new command fires no events."""
    if call.by and not command.by_hooks:
        return await refuse_hook(call, command)
    event, changes = await view.run_watched(
        f"command:{command.name}",
        ("command", "args"),
        command=command.name,
        raw_command=call.typed.word,
        args=call.args,
        raw_args=call.args,
    )
    if (refusal := find_refusal(event.outcome, f"/{command.name} was refused by a hook.")) is not None:
        return CommandResult(refusal)
    if event.get("result") is not None:
        return CommandResult(str(event["result"]))
    if (event["command"], event["args"]) != (command.name, call.args):
        typed = parse_command(f"/{event['command']} {call.context.registry.withheld.cut(event['args'])}")
        other = find_command(call.context, typed.word, call.role) if typed else None
        if typed is None or other is None:
            return CommandResult(f"/{command.name} became /{event['command']}, which cannot be run here.")
        call, command = msgspec.structs.replace(call, typed=typed, by=changes[-1].hook), other
        if not command.by_hooks:
            return await refuse_hook(call, command)
    try:
        ran = await command.run(call)
    except SessionError as error:
        return CommandResult(str(error))
    done = ran.activity or (ActivityRecord(what=f"/{command.name}") if call.by else None)
    if done:
        await write_activity(call.context, call.message, done, call.by)
    return ran


async def refuse_hook(call: CommandCall, command: Command) -> CommandResult:
    """Explain that a hook inserted a command that only people may type."""
    await write_activity(
        call.context, call.message, ActivityRecord(what=f"/{command.name}", outcome="refused"), call.by
    )
    return CommandResult(NOT_BY_HOOKS.format(hook=call.by, command=command.name))


async def write_activity(context: DispatcherContext, message: Message, done: ActivityRecord, by: str = "") -> None:
    """Record `done` as an act of the message's author, or of the hook `by` that caused it."""
    who, place = describe_hook(by) if by else message.sender, f"{message.address.served_as}:{message.address.chat_id}"
    await context.activity.write(structs.replace(done, who=who, place=place))


async def write_refusal(context: DispatcherContext, message: Message, word: str, by: str = "") -> None:
    """Record that the author typed a denied command, if the command is for a higher role than `user`."""
    command = context.commands.get(word)
    if command and not command.is_for("user"):
        await write_activity(context, message, ActivityRecord(what=f"/{command.name}", outcome="refused"), by)


async def begin_session(call: CommandCall) -> CommandResult:
    opened = transitions.begin_session(
        call.session, call.context.sessions.now(), "new", message=call.message, keep=KEPT_SETTINGS
    )
    return CommandResult(
        "A new session begins. I do not remember the session before; /resume brings it back.", (opened,)
    )


async def retry_turn(call: CommandCall) -> CommandResult:
    request = transitions.find_last_request(call.session, call.message.author)
    return CommandResult(changes=(transitions.undo_turns(call.session),), then=request)


async def undo_turns(call: CommandCall) -> CommandResult:
    if call.args and not call.args.isdecimal():
        return CommandResult(f"/undo takes a number of turns, not {call.args!r}")
    undone = transitions.undo_turns(call.session, int(call.args[:MOST_DIGITS] or 1))
    return CommandResult(
        f"The last {'turn is' if undone.turns == 1 else f'{undone.turns} turns are'} forgotten.", (undone,)
    )


async def set_title(call: CommandCall) -> CommandResult:
    if not call.args:
        return CommandResult(
            f"This session is called: {call.session.title}" if call.session.title else "It has no title yet."
        )
    changed = transitions.change_title(call.args)
    return CommandResult(f"This session is now called: {changed.value}", (changed,))


async def set_model(call: CommandCall) -> CommandResult:
    names = call.context.reports.models()
    if not call.args:
        now = call.session.model or f"{names[0]} (default)"
        return CommandResult(f"Model of this session: {now}\nThere are: {', '.join(names)}")
    changed = transitions.change_model(call.args)
    return CommandResult(f"Model of this session: {changed.value or f'{names[0]} (default)'}", (changed,))


async def set_voice(call: CommandCall) -> CommandResult:
    transcriber, speaker = call.context.voice.transcriber, call.context.voice.speaker
    wanted = VOICE.fullmatch(" ".join(call.args.lower().split()))
    if wanted is None:
        return CommandResult(f"/voice takes nothing, `on`, `off`, `quote on` or `quote off`, not {call.args!r}")
    can_speak = speaker is not None and speaker.is_on and call.message.address.platform not in SILENT_PLATFORMS
    if wanted["spoken"] == "on" and not can_speak:
        return CommandResult(
            "Answers cannot be spoken here: no speaker is set up (`voice.speak`), or this chat plays no audio."
        )
    heard = "are heard" if transcriber and transcriber.is_on else "are not heard here"
    is_quoted, is_spoken = bool(call.session.settings.get(QUOTES)), bool(call.session.settings.get(SPOKEN))
    changes = list[TurnRecord]()
    if wanted["spoken"]:
        is_spoken = wanted["spoken"] == "on"
        changes.append(transitions.change_setting(SPOKEN, is_on=is_spoken))
    if wanted["quote"]:
        is_quoted = wanted["quote"] == "on"
        changes.append(transitions.change_setting(QUOTES, is_on=is_quoted))
    shown = "are shown to you" if is_quoted else "are not shown; `/voice quote on` shows them"
    said = "are spoken too" if is_spoken else "are written alone"
    more = "; `/voice on` has them spoken too" if can_speak and not is_spoken else ""
    return CommandResult(
        f"Voice notes {heard}; the words that I understood {shown}.\nMy answers {said}{more}.", tuple(changes)
    )


async def list_sessions(call: CommandCall) -> CommandResult:
    past = await call.context.sessions.read_all(call.session.key)
    rows = [
        f"{'*' if one.session_id == call.session.session_id else '-'} {one.session_id}  {one.title or one.first_words}"
        for one in list(past.values())[-MOST_LISTED:]
    ]
    return CommandResult(
        "\n".join(rows) + "\n/resume ID goes back to one." if rows else "This chat has no session yet."
    )


async def resume_session(call: CommandCall) -> CommandResult:
    past = await call.context.sessions.read_all(call.session.key)
    found = [one for one in past.values() if call.args and one.session_id.startswith(call.args)]
    if len(found) != 1:
        return CommandResult(
            f"{'No' if not found else 'More than one'} session begins with {call.args!r}; /sessions lists them."
        )
    opened = transitions.resume_session(call.session, found[0])
    return CommandResult(f"Back in {opened.session_id}: {found[0].title or found[0].first_words}", (opened,))


async def run_approvals(call: CommandCall) -> CommandResult:
    known = approvals_of(call.context.engine, call.message, call.session)
    text = await run_approvals_command(known, call.args)
    may_see = call.context.access.can_approve(call.role, is_own=False) and call.message.address.chat_type == "dm"
    if not may_see or call.args:
        return CommandResult(text)
    context = call.context
    proposed = await show_proposals(context.engine, call.message, call.role)
    requests = ApprovalRequests(context.engine, context.sessions, context.outbox, call.lanes)
    found = await requests.list_open()
    return CommandResult("\n\n".join([*(show_request(request, turn) for request, turn in found), *proposed, text]))


async def branch_session(call: CommandCall) -> CommandResult:
    opened = transitions.branch_session(call.session, call.session, call.context.sessions.now(), call.args)
    return CommandResult(
        f"This is a copy now, {opened.session_id}; /resume {call.session.session_id} goes back.", (opened,)
    )


async def show_help(call: CommandCall) -> CommandResult:
    return CommandResult(call.context.commands.help(call.role))


async def say_hello(call: CommandCall) -> CommandResult:
    """Greet a person; if the text contains the code of an invitation, use the invitation."""
    if not call.by:
        said, _ = await pairing_commands.use_invitation(call.context, call.message, call.role)
        if said:
            return CommandResult(said)
    return CommandResult("Hello. Ask a question, or give me a task; /help lists the commands.")


async def show_status(call: CommandCall) -> CommandResult:
    session = call.session
    standing = await call.lanes.queue_position(session.key)
    doing = "a turn is running" if standing.is_running else "waiting for you" if standing.is_waiting else "idle"
    held = format_count(len(session.entries), "entry", "entries")
    rows = [f"session {session.session_id or 'not begun'}: {doing}, {held}"]
    return CommandResult("\n".join([call.context.reports.status(), *rows]))


async def show_person(call: CommandCall) -> CommandResult:
    at = call.message.address
    return CommandResult(f"{at.served_as} user {call.message.user_id}, {call.role}; session {call.session.key}")


async def stop_turn(call: CommandCall) -> CommandResult:
    stopped = await call.lanes.interrupt(call.session.key)
    return CommandResult(
        {"running": "Stopped.", "waiting": "Stopped; the question is withdrawn."}.get(stopped, "Nothing runs.")
    )


async def show_usage(call: CommandCall) -> CommandResult:
    person, is_all = call.message.payer, is_admin(call.role)
    return CommandResult(await describe_usage(call.context.usage, call.session.usage, person, is_all=is_all))


async def show_queue(call: CommandCall) -> CommandResult:
    standing = await call.lanes.queue_position(call.session.key)
    waiting = max(0, standing.messages - standing.is_running)
    here, lanes = format_count(waiting, "message"), format_count(standing.lanes, "session")
    return CommandResult(f"Waiting in this session: {here}; waiting for their turn: {lanes}.")


async def show_hooks(call: CommandCall) -> CommandResult:
    return CommandResult(await call.context.reports.hooks(call.role))


async def run_letters(call: CommandCall) -> CommandResult:
    """List dead letters, or retry the dead letters of a hook. Only admins see the reason for a failure."""
    verb, _, rest = call.args.partition(" ")
    if not verb:
        return CommandResult(await call.context.reports.letters())
    name = rest.strip()
    if verb != "retry" or not name:
        return CommandResult("/letters takes `retry NAME`, or nothing.")
    try:
        count = await call.context.reports.retry(name)
    except HookError as error:
        return CommandResult(say_error(error) if is_admin(call.role) else NO_SUCH_HOOK)
    told = f"{name} has no dead letters."
    if count:
        told = f"{format_count(count, 'dead letter')} of {name} {'is' if count == 1 else 'are'} told again."
    return CommandResult(told, activity=ActivityRecord(what="hooks.dead_retry", on=name))


async def steer_platforms(call: CommandCall) -> CommandResult:
    if not call.args:
        return CommandResult(call.context.reports.platforms(call.role))
    verb, _, name = call.args.partition(" ")
    try:
        told = await call.context.reports.steer(verb, name.strip())
    except AdapterError as error:
        return CommandResult(say_error(error))
    return CommandResult(told, activity=ActivityRecord(what="platform.steer", on=f"{verb} {name.strip()}"))


async def run_pairing(call: CommandCall) -> CommandResult:
    at = call.message.address
    if at.chat_type != "dm" and call.args.startswith("approve"):
        return CommandResult(NOT_IN_GROUPS)
    if at.chat_type != "dm" and call.args.startswith("invite"):
        return CommandResult(INVITED_ALONE)
    sender, role = call.message.sender, call.role
    return await pairing_commands.run_pairing_command(call.context, call.args, sender, role, at.served_as)


async def run_settings(call: CommandCall) -> CommandResult:
    return await run_settings_command(call.context, call.message, call.args)


async def restart_gateway(call: CommandCall) -> CommandResult:
    await call.context.reports.restart()
    told = "The gateway restarts; running turns are finished or resumed afterwards."
    return CommandResult(told, activity=ActivityRecord(what="restart"))


async def open_page(call: CommandCall) -> CommandResult:
    at = call.message.address
    if at.chat_type != "dm" or call.message.kind == "internal":
        return CommandResult(NOT_FOR_MANY)
    if at.platform in OWN_PLATFORMS:
        return CommandResult("Here it is `hermes-gateway open`, where the gateway runs, that gives a link.")
    if rank_of(call.role) < rank_of("operator"):
        return CommandResult(NOT_FOR_USERS)
    try:
        link = await call.context.reports.open_page(call.role, call.message.sender)
    except AccessError as error:
        return CommandResult(f"No link: {error}.")
    told = LINK.format(link=link, role=call.role)
    return CommandResult(told, activity=ActivityRecord(what="/open"), codes=(link.rpartition("=")[2],))


async def approve_question(call: CommandCall) -> CommandResult:
    args, _, mark = call.args.partition(QUESTION_SIGN)
    if args.strip() not in APPROVE_ANSWERS:
        return CommandResult(f"/approve takes nothing, `session` or `always`, not {args.strip()!r}")
    return await _answer(call, mark, APPROVE_ANSWERS[args.strip()], "Approved.")


async def deny_question(call: CommandCall) -> CommandResult:
    return await _answer(call, call.args.partition(QUESTION_SIGN)[2], "deny", "Denied.")


async def _answer(call: CommandCall, mark: str, answer: str, done: str) -> CommandResult:
    """Answer the person's open questions; after a press of a button, only the question with the token `mark`."""
    if proposed := await answer_proposal(call.context.engine, call.message, call.role, mark, answer):
        return CommandResult(proposed.text, activity=proposed.activity)
    turn = call.session.turn
    rights = await find_rights(call.context.engine, call.context.access, call.session, call.message, call.role)
    names = [name for name in rights.names if turn and mark in ("", question_token_of(turn.turn_id, name))]
    # A second press of a button needs no answer: the first press had its effect.
    gone = "" if call.message.kind == "button" else "That question is no longer open."
    if not names and mark:
        return CommandResult(gone)
    if turn is None or not names:
        raise SessionError("no question is open in this session")
    by, by_name = call.message.sender, call.message.user_name
    counts = {name: as_answer(turn, name, answer, is_own=rights.is_own) for name in names}
    answered = [await call.lanes.answer(call.session.key, name, counts[name], by, by_name=by_name) for name in names]
    if any(one != answer for one in counts.values()):
        done = ONLY_ONCE
    approvals = [name for name, is_taken in zip(names, answered, strict=True) if is_taken and is_approval(turn, name)]
    said = describe_answer(call.session, approvals[0], answer) if approvals else None
    if call.message.kind == "button" and done != ONLY_ONCE:
        done = ""  # the question shows the result, and the network confirms the press
    return CommandResult(done if any(answered) else gone, activity=said)


def describe_answer(session: Session, question: str, answer: str) -> ActivityRecord:
    """Make the activity record of an approval or denial, without the words of the answer."""
    given = "allow" if is_yes(answer) else "deny"
    turn_id = session.turn.turn_id if session.turn else ""
    return ActivityRecord(what="approvals.answer", on=f"{given} {question_token_of(turn_id, question)}")


TURNS = CommandOption("turns", "how many turns (default: 1)", "number")
TITLE = CommandOption("title", "the new title")
MODEL = CommandOption(
    "model", "the name of the model; without one, you see the list", list_names=command_names.list_models
)
VOICES = (
    CommandOption("spoken", "speak the answers too", "switch"),
    CommandOption("quote", "show the text of your voice notes", "switch", before="quote"),
)
SESSION = CommandOption("session", "the session", list_names=command_names.list_sessions, is_needed=True)
DEAD_HOOK = CommandOption(
    "retry", "the hook whose dead letters to retry", list_names=command_names.list_dead_hooks, before="retry"
)
HOW_LONG = CommandOption("for", "approve for longer than this call", choices=("session", "always"))
REVOKED = CommandOption("revoke", "the number of the approval to revoke", "number", before="revoke")
STEERING = (
    CommandOption("do", "the action", choices=("pause", "resume", "restart")),
    CommandOption("platform", "the chat network", list_names=command_names.list_platforms),
)
PAIRING = (
    CommandOption("do", "the action", choices=("approve", "invite", "revoke", "uninvite")),
    CommandOption("whom", "a code, a user id or the number of an invitation"),
    CommandOption("as", "the role (default: user)", choices=pairing_commands.GIVEN_ROLES, before="--as"),
    CommandOption("for", "how long an invitation is valid: 30m, 2h or 1d", before="--for"),
)
RULE = (
    CommandOption("name", "the rule to change", choices=CHANGEABLE),
    CommandOption("value", "the new value", list_names=command_names.list_rule_values),
)
for_hooks = partial(Command, by_hooks=True)  # hooks may replace a person's words by these commands
BUILT_IN = (
    for_hooks("help", "list the commands", show_help, aliases=("commands",), rights="everyone", urgent=True),
    for_hooks("start", "say hello", say_hello, rights="everyone", hidden=True, urgent=True),
    for_hooks("status", "show what the gateway and this session are doing", show_status, urgent=True),
    for_hooks("whoami", "show who you are here, and what you may do", show_person, rights="everyone", urgent=True),
    for_hooks("stop", "stop what is running in this session", stop_turn, urgent=True),
    for_hooks("new", "begin a new session", begin_session, aliases=("reset",)),
    for_hooks("retry", "answer the last message again", retry_turn),
    for_hooks("undo", "forget the last turns", undo_turns, usage="[N]", options=(TURNS,)),
    for_hooks("title", "show the session's title, or set it", set_title, usage="[TEXT]", options=(TITLE,)),
    for_hooks("model", "show the session's model, or choose one", set_model, usage="[NAME|default]", options=(MODEL,)),
    for_hooks(
        "voice",
        "switch spoken answers, and the text of your voice notes",
        set_voice,
        usage="[on|off] [quote on|quote off]",
        options=VOICES,
    ),
    for_hooks("sessions", "list the sessions of this chat", list_sessions),
    for_hooks("resume", "go back to an earlier session", resume_session, usage="ID", options=(SESSION,)),
    for_hooks("branch", "go on in a copy of this session", branch_session, aliases=("fork",), options=(TITLE,)),
    for_hooks("usage", "show your tokens, and what they cost", show_usage, urgent=True),
    for_hooks("queue", "list the messages that wait in this session", show_queue, urgent=True),
    JOBS,
    for_hooks("hooks", "list the hooks and their state", show_hooks, urgent=True),
    Command(
        "letters",
        "list the dead letters of hooks, or retry them",
        run_letters,
        usage="[retry NAME]",
        options=(DEAD_HOOK,),
        rights="operator",
        urgent=True,
    ),
    Command(
        "approve",
        "approve the tool call, or say yes to the question",
        approve_question,
        usage="[session|always]",
        options=(HOW_LONG,),
        urgent=True,
        answers=True,
    ),
    Command(
        "approvals",
        "list standing approvals, and what waits for approval",
        run_approvals,
        usage="[revoke NUMBER]",
        options=(REVOKED,),
    ),
    Command("deny", "deny the tool call, or say no to the question", deny_question, urgent=True, answers=True),
    Command(
        "platform",
        "list the chat networks and their state",
        steer_platforms,
        usage="[pause|resume|restart NAME]",
        options=STEERING,
        # not urgent: the command may end the platform it came from, which would deliver an unstored message again
        rights="operator",
    ),
    Command(
        "pairing",
        "list pairing requests, authorize people, invite them",
        run_pairing,
        usage="[approve CODE|invite|revoke ID]",
        options=PAIRING,
        rights="admin",
        urgent=True,
    ),
    Command(
        "settings",
        "show or change the rules of this chat: who gets an answer, and when",
        run_settings,
        usage="[NAME VALUE|default]",
        options=RULE,
        rights="admin",
        urgent=True,
    ),
    Command("open", "get a link to the web page, for you alone", open_page, urgent=True),
    Command("restart", "restart the gateway", restart_gateway, rights="admin", urgent=True),
)
