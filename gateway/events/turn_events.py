"""The events in a turn: the agent, its model, its tools, and all other parts of it."""

from functools import partial

from gateway.events.fields import (
    CHAT,
    CHAT_TYPE,
    DENY,
    END,
    HOP,
    MESSAGES,
    PLATFORM,
    REASON,
    RETRY,
    ROLE,
    SESSION,
    SKIP_RESULT,
    THREAD,
    TOOLS,
    USER,
    EventField,
    EventSpec,
    make_error_field,
    make_writable_field,
)

_START = (
    PLATFORM,
    USER,
    CHAT,
    THREAD,
    CHAT_TYPE,
    SESSION,
    EventField("message", "string", "the first 500 characters of what the person wrote"),
)

_in_turn = partial(EventSpec, in_turn=True)

TURN_EVENTS = (
    EventSpec(
        "agent:init",
        "An agent is there: once for each agent while the gateway runs, before its first turn.",
        (EventField("agent", "string", "its name"), EventField("kind", "string", "what it is: main, sub-agent"), ROLE),
    ),
    _in_turn(
        "agent:start",
        "A turn begins.",
        (
            *_START,
            make_writable_field("message_full", "string", "all of it"),
            MESSAGES,
            make_writable_field(
                "context", "string[]", "texts added to the person's message for this turn's model calls only"
            ),
            make_writable_field(
                "config", "object", "max_hops, max_tokens, max_seconds, model; others are the model's own: temperature"
            ),
            SKIP_RESULT,
        ),
        END | DENY,
    ),
    _in_turn(
        "agent:step",
        "The model wanted tools, and they have run.",
        (
            PLATFORM,
            USER,
            SESSION,
            EventField("iteration", "integer", "the first is 1"),
            EventField("tool_names", "string[]", "the tools of this step"),
            EventField(
                "tools",
                "object[]",
                "of each name, result, arguments (as JSON text), error (whether it failed) "
                "and denied (by hook, person or null)",
            ),
        ),
    ),
    _in_turn(
        "agent:end",
        "The turn is over, however it ended. Retry begins a new turn with the message.",
        (
            *_START,
            EventField("message_full", "string", "all of it"),
            EventField("response", "string", "the first 500 characters of the reply"),
            make_writable_field("response_full", "string", "all of it"),
            make_error_field("the turn"),
            EventField(
                "stop",
                "string",
                "why: end_turn, result, ended, denied, interrupted, failed, empty; "
                "at a limit length, hops, loop, tokens, seconds",
            ),
            EventField("hook_ended", "string", "the reason of the hook that ended it, or empty"),
            EventField("model", "string", "the model that answered last, by its provider's name for it"),
            EventField("usage", "object", "input_tokens, output_tokens, calls, cost, model"),
            EventField("completed", "boolean", "whether the model came to its end"),
            EventField("interrupted", "boolean", "whether a person stopped it"),
        ),
        RETRY,
    ),
    _in_turn(
        "llm:before",
        "The model is about to be called.",
        (
            MESSAGES,
            make_writable_field("system", "string", "the instructions; empty sends none"),
            TOOLS,
            make_writable_field("model", "string", "which model"),
            HOP,
            EventField("tokens", "integer", "how long the input is, estimated"),
            SKIP_RESULT,
        ),
        END | DENY,
    ),
    _in_turn(
        "llm:chunk",
        "A piece of the reply streams in.",
        (
            make_writable_field("chunk", "string?", "what is passed on and stored; null drops it"),
            EventField("text", "string", "all that has been passed on before it"),
            EventField("index", "integer", "the first is 0"),
            HOP,
        ),
        END | DENY,
    ),
    _in_turn(
        "llm:after",
        "The model answered or failed. Retry discards the answer and calls again.",
        (
            make_writable_field("content", "string", "what it said"),
            make_writable_field(
                "tool_calls", "object[]", "what it wants run: id, name, args; emptied, the answer is final"
            ),
            make_error_field("the call"),
            EventField("stop", "string", "why the model stopped"),
            EventField("usage", "object?", "input_tokens, output_tokens"),
            HOP,
        ),
        END | RETRY,
    ),
    _in_turn(
        "tools:before",
        "A batch of tools is about to run. Deny gives each call an error result.",
        (make_writable_field("calls", "object[]", "the calls: id, name, args"), TOOLS, HOP),
        END | DENY,
    ),
    _in_turn(
        "tools:after",
        "The batch has run.",
        (make_writable_field("results", "object[]", "in the order of the calls: call_id, name, content, error"), HOP),
        END,
    ),
    _in_turn(
        "tool:before",
        "One tool is about to run.",
        (
            make_writable_field("tool", "string", "its name; another name runs another tool"),
            make_writable_field("args", "object", "its arguments"),
            make_writable_field("impl", "any", "the tool itself, or null when there is none of that name", live=True),
            SKIP_RESULT,
            EventField("call_id", "string", "the call, by the model's own id"),
            HOP,
        ),
        END | DENY,
    ),
    _in_turn(
        "tool:after",
        "One tool has run, failed, or was denied. Deny withholds what it gave.",
        (
            EventField("tool", "string", "its name"),
            EventField("args", "object", "its arguments"),
            make_writable_field("result", "any", "what the model will see"),
            make_writable_field("parts", "object[]", "pictures beside it: kind, path, digest, size, mime; some may go"),
            make_error_field("the tool"),
            EventField("duration", "number?", "seconds; null when it did not run"),
            EventField("denied", "string?", "why it was not allowed, or null"),
            EventField("call_id", "string", "the call, by the model's own id"),
            HOP,
        ),
        END | DENY | RETRY,
    ),
    _in_turn(
        "message:add",
        "A message is about to join the conversation. Deny puts a placeholder in its place.",
        (make_writable_field("message", "object", "role, content, tool calls"),),
        DENY,
    ),
    _in_turn(
        "handoff:before",
        "Another agent is about to take over (transfer) or to be asked (call).",
        (
            EventField("kind", "string", "transfer or call"),
            EventField("source", "string", "the agent that hands over"),
            make_writable_field("target", "string", "the agent that takes over"),
            make_writable_field("input", "any", "what it is given"),
            REASON,
            SKIP_RESULT,
        ),
        END | DENY,
    ),
    _in_turn(
        "handoff:after",
        "The other agent is done.",
        (
            EventField("kind", "string", "transfer or call"),
            EventField("source", "string", "the agent that handed over"),
            EventField("target", "string", "the agent that took over"),
            make_writable_field("result", "any", "what it answered"),
            make_error_field("it"),
        ),
        END | RETRY,
    ),
    _in_turn(
        "skill:before",
        "A skill is about to be loaded or unloaded.",
        (
            EventField("action", "string", "load or unload"),
            make_writable_field("skill", "string", "its name; another name takes another skill"),
            make_writable_field("version", "string", "which of its versions, or empty"),
            make_writable_field("result", "string?", "given here, it is the skill's text"),
        ),
        DENY,
    ),
    _in_turn(
        "skill:after",
        "A skill has been loaded or unloaded.",
        (
            EventField("action", "string", "load or unload"),
            EventField("skill", "string", "its name"),
            EventField("version", "string", "which of its versions, or empty"),
            make_writable_field("content", "string", "its text, as the model will see it"),
            EventField("tools", "string[]", "the tools that came or went with it"),
            make_error_field("it"),
        ),
    ),
    _in_turn(
        "node:before",
        "A part of the turn is entered.",
        (
            EventField("node", "string", "which one"),
            EventField("node_type", "string", "call_llm, tool_node, call_agent, load_skill or interrupt"),
            make_writable_field("state", "object", "what it works on"),
            SKIP_RESULT,
        ),
        END | DENY,
    ),
    _in_turn(
        "node:after",
        "A part of the turn is left.",
        (
            EventField("node", "string", "which one"),
            EventField("node_type", "string", "call_llm, tool_node, call_agent, load_skill or interrupt"),
            make_writable_field("result", "any", "what it yields"),
            make_error_field("it"),
            make_writable_field("state", "object", "what it worked on"),
        ),
        RETRY,
    ),
    _in_turn(
        "interrupt:before",
        "The person is about to be asked.",
        (
            EventField("name", "string", "the question's name"),
            make_writable_field("value", "any", "what the person is shown"),
        ),
        DENY,
    ),
    _in_turn(
        "interrupt:after",
        "The person answered.",
        (
            EventField("name", "string", "the question's name"),
            EventField("value", "any", "what the person was shown"),
            make_writable_field("response", "any", "the answer; a hook makes no yes of it where a tool is to run"),
        ),
    ),
    EventSpec(
        "model:create",
        "A model client is about to be made. `result` is a client to use instead, or a function that makes one.",
        (
            EventField("llm_id", "string", "the model's id in the configuration"),
            EventField("provider", "string", "who serves it"),
            make_writable_field("model", "string", "the model's name there"),
            make_writable_field("kwargs", "object", "what the client is made with"),
            make_writable_field(
                "result", "any", "a client, or a function of no arguments that makes one when needed", live=True
            ),
        ),
    ),
)
