"""A gateway of another version than this program: it was started before that was installed, and answers otherwise."""

from contextlib import suppress

from gateway import __version__
from gateway.config.home import Home
from gateway.control_socket.client import call_gateway
from gateway.errors import GatewayError


def describe_other_version(home: Home) -> str:
    """What to do about the one that runs; empty: it is of this version, or there is none."""
    with suppress(GatewayError):
        running = str(call_gateway(home.socket, "status", 5.0)["version"])
        if running != __version__:
            return (
                f"the gateway that runs is {running}, and this program is {__version__}: they do not fit\n"
                "start it again: hermes-gateway stop, and as it was started before"
            )
    return ""
