"""The server that this hook calls: `uvicorn server:app --port 8099`. Any ASGI server will do."""

from gateway.hooks import Deny
from gateway.hooks.server import HookServer


def guard_shell(fields):
    if fields["tool"] == "shell" and "sudo" in str(fields["args"]):
        return Deny("Nothing here runs as root.")
    return None


app = HookServer({"tool:before": guard_shell})
