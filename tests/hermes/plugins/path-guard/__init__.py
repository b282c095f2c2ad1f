"""Class-based, with its rules in a package module; counts what it has seen, and rewrites what it does not like."""

from .rules import PATH_ARGUMENTS, is_private


class PathGuard:
    def __init__(self):
        self.seen = {}

    def before(self, **event):
        name = event.get("tool_name") or ""
        self.seen[name] = self.seen.get(name, 0) + 1
        argument = PATH_ARGUMENTS.get(name)
        if argument and is_private(event["args"].get(argument, "")):
            return {"action": "block", "message": f"{event['args'][argument]} is private ({name}, {self.seen[name]})"}
        if name == "patch" and event["args"]["replace_all"]:
            return {"action": "modify", "args": {"replace_all": False, "new_string": event["args"]["new_string"].upper()}}

    def status(self, raw_args):
        return " ".join(f"{name}={count}" for name, count in sorted(self.seen.items()))

    def by_hand(self, raw_args):
        return self.ctx.dispatch_tool("search_files", {"path": raw_args or ".", "target": "files"})

    def register(self, ctx):
        self.ctx = ctx
        ctx.register_hook("pre_tool_call", self.before)
        ctx.register_command("path-guard", self.status)
        ctx.register_command("path-list", self.by_hand)


guard = PathGuard()
register = guard.register
