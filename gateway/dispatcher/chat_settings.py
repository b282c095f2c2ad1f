"""`/settings`: show and change the rules of a chat or thread, by words or by buttons."""

from gateway.chats.journal import list_keys
from gateway.chats.rules import CHANGEABLE, ChatRule, RuleName
from gateway.dispatcher.command_names import DEFAULT
from gateway.dispatcher.commands import CommandResult
from gateway.dispatcher.context import OWN_PLATFORMS, DispatcherContext
from gateway.messages.message import Button, Message
from gateway.records.records import ActivityRecord

MOST_BUTTONS = 5  # the buttons of one row
LONGEST_VALUE = 64  # bytes of a button's value
USAGE = "Write `/settings NAME VALUE`, or `/settings NAME default` to take it back; NAME is one of: {names}."
NOT_A_CHAT = "This chat is not on a chat network: its settings are in config.yaml alone."
MEANINGS = {
    "answer": "when the bot answers in a group",
    "agent": "the agent that answers",
    "model": "the model of its answers",
    "language": "the language of the answers",
    "progress": "show what the agent does at the moment",
    "reactions": "the bot's reactions under what people write",
    "typing": "show that the bot is typing",
}


async def run_settings_command(context: DispatcherContext, message: Message, args: str) -> CommandResult:
    """Run `/settings` for an admin. Raises SessionError if another admin changed the rule at the same moment."""
    if message.address.platform in OWN_PLATFORMS or message.kind == "internal":
        return CommandResult(NOT_A_CHAT)
    word, _, value = args.partition(" ")
    name = next((one for one in CHANGEABLE if one == word.lower()), None)
    if not word:
        return show_rules(context, message)
    if name is None:
        return CommandResult(f"Unknown setting {word[:40]!r}. {USAGE.format(names=', '.join(CHANGEABLE))}")
    if not value.strip():
        return show_rule(context, message, name)
    return await change_rule(context, message, name, value.strip())


def show_rules(context: DispatcherContext, message: Message) -> CommandResult:
    """Show all rules of the chat and their origins, with a button for each rule that can be changed."""
    rules = context.chats.find(message.address, message.user_id)
    rows = [f"{name} ({MEANINGS[name]}): {describe_rule(rules[name])}" for name in CHANGEABLE]
    text = "\n".join(
        [f"Settings of {list_keys(message.address)[0]}:", *rows, USAGE.format(names=", ".join(CHANGEABLE))]
    )
    return CommandResult(text, buttons=make_buttons([(name, name) for name in CHANGEABLE if not rules[name].is_fixed]))


def show_rule(context: DispatcherContext, message: Message, name: RuleName) -> CommandResult:
    """Show one rule, and its possible values."""
    rule = context.chats.find(message.address, message.user_id)[name]
    text = f"{name} ({MEANINGS[name]}): {describe_rule(rule)}"
    if rule.is_fixed:
        return CommandResult(text)
    choices = context.chats.list_choices(name)
    can_be = ", ".join(choices) if choices else "a language, as `en` or `de-AT`"
    shown = make_buttons([(one, f"{name} {one}") for one in (*choices[: MOST_BUTTONS - 1], DEFAULT)])
    return CommandResult(f"{text}\nIt can be: {can_be}; or {DEFAULT}.", buttons=shown)


async def change_rule(context: DispatcherContext, message: Message, name: RuleName, value: str) -> CommandResult:
    """Change a rule and record the change; deny the change of a rule that the configuration fixes."""
    chats, at = context.chats, message.address
    refused = ActivityRecord(what="settings", on=f"{name}", outcome="refused")
    if (rule := chats.find(at, message.user_id)[name]).is_fixed:
        return CommandResult(f"{name} is fixed here: {describe_rule(rule)}. Change it there.", activity=refused)
    value = "" if value.lower() == DEFAULT else value
    if value and not chats.is_right(name, value):
        choices = ", ".join(chats.list_choices(name)) or "a language, as `en` or `de-AT`"
        return CommandResult(f"{name} cannot be {value[:40]!r}. It can be: {choices}; or {DEFAULT}.")
    chat = list_keys(at)[0]
    others = {one: kept for one, kept in chats.kept.chats.get(chat, {}).items() if one != name}
    person = message.sender if at.chat_type == "dm" else ""
    await chats.kept.write(chat, {**others, name: value} if value else others, person)
    now = chats.find(at, message.user_id)[name]
    done = ActivityRecord(what="settings", on=f"{chat} {name} {value or DEFAULT}")
    return CommandResult(f"{name} in {chat}: {describe_rule(now)}", activity=done)


def describe_rule(rule: ChatRule) -> str:
    """Describe a rule's value, its origin, and whether the configuration fixes the rule."""
    return f"{rule.value or DEFAULT}, by {rule.origin}{', which is fixed' if rule.is_fixed else ''}"


def make_buttons(choices: list[tuple[str, str]]) -> tuple[Button, ...]:
    """Make a button of each pair: its label, and the words that it types after `/settings`."""
    made = (Button(label, f"/settings {typed}") for label, typed in choices)
    return tuple(one for one in made if len(one.value.encode()) <= LONGEST_VALUE)
