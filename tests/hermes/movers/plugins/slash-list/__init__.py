"""One command for Slack, where others are taken."""

from hermes_cli.commands import slack_subcommand_map


def _subs(raw_args=""):
    known = slack_subcommand_map()
    wanted = raw_args.split()
    return " ".join(known.get(word, f"no {word}") for word in wanted) or "usage: /subs WORD..."


def register(ctx):
    ctx.register_command("subs", _subs, description="What /hermes WORD would run", args_hint="WORD...")
