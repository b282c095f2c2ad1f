"""Changes what it may, and fails beside that."""


def fails(**_):
    raise RuntimeError("a failing observer")


def register(ctx):
    ctx.register_hook("pre_llm_call", fails)
    ctx.register_hook("pre_llm_call", lambda user_message, **_: {"context": f"CONTEXT of {user_message}"})
    ctx.register_hook("pre_llm_call", lambda **_: "a plain text")
    ctx.register_hook("transform_tool_result", lambda tool_name, **_: "night" if tool_name == "moon" else None)
    ctx.register_hook("transform_tool_result", lambda tool_name, **_: "too late" if tool_name == "moon" else None)
    ctx.register_hook("transform_terminal_output", lambda output, returncode, **_: f"<{output}|{returncode}>")
    ctx.register_hook("transform_llm_output", lambda response_text, **_: response_text.replace("grey", "blue") or "")
    ctx.register_hook("pre_gateway_dispatch", dispatch)


def dispatch(event, gateway, session_store):
    if event.text == "drop me":
        return {"action": "skip", "reason": "dropped"}
    if event.text == "rewrite me":
        return {"action": "rewrite", "text": "hello"}
    return {"action": "allow"}
