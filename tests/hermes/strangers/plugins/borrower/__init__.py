"""Takes from Hermes's modules what plugins that come with it take."""

import json
from pathlib import Path

from hermes_cli.config import cfg_get, get_env_value, get_hermes_home, load_config
from hermes_cli.profiles import get_active_profile_name
from tools.registry import tool_error, tool_result


def register(ctx):
    config = load_config()
    found = [
        tool_error("there is none", code=3),
        [tool_result({"a": "ä"}), tool_result(a=1), tool_result([])],
        [cfg_get(config, "mine", "volume"), cfg_get(config, "mine", "volume", "x", default=4), cfg_get(None, "x")],
        [get_env_value("BORROWER_KEY"), get_env_value("BORROWER_NONE")],
        get_active_profile_name() == ctx.profile_name,
    ]
    Path(get_hermes_home(), "seen-borrower.jsonl").write_text(json.dumps(found))
    ctx.register_command("borrowed", lambda raw_args: json.dumps(found))
