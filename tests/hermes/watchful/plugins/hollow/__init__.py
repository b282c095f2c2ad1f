"""Not finished: it has its rules, and nothing asks it."""

RULES = {"terminal": "not today"}


def before(tool_name="", **_):
    if tool_name in RULES:
        return {"action": "block", "message": RULES[tool_name]}
    return None


def register(ctx):
    return None
