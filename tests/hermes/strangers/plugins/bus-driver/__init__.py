"""Tells others of what it does."""

from .routes import ROUTES


def register(ctx):
    def drive(raw_args):
        stop = ROUTES.get(raw_args, raw_args)
        told = ctx.emit("stopped", {"at": stop, "name": "bus", "passengers": [1, 2]})
        try:
            ctx.emit("hermes:stopped")
        except ValueError:
            return f"told {told}, and only by its own name"

    ctx.register_command("drive", drive, "to a stop", "<stop>")
