"""One setting changes where it is set: what is planned, what is refused before, and the way back."""

import os
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.change_writer import undo_change, write_change
from gateway.config.changes import prepare_settings, split_key
from gateway.config.env_lines import remove_variable, set_variable
from gateway.config.environment import read_environment
from gateway.config.home import Home
from gateway.config.loading import load_configuration
from gateway.errors import ConfigError
from gateway.yaml_source.edit import EditError

SCHEMA = load_settings_schema()
TOKEN = "123456789:AAE-canary-canary-canary-canary-can"


def write(home: Home, config: str = "", env: str = "") -> None:
    for path, text in ((home.config, config), (home.env, env)):
        if text:
            path.write_bytes(text.encode())
            path.chmod(0o600)


def change(home: Home, key: str, value: str | None, **environ: str) -> None:
    write_change(home, prepare_settings(SCHEMA, home, environ, {key: value}))


def texts(home: Home) -> tuple[str, str]:
    return tuple(path.read_bytes().decode() if path.exists() else "" for path in (home.config, home.env))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("config", "env", "key", "value", "wanted"),
    [
        ("", "", "sessions.idle", "2h", ("sessions:\n  idle: 2h\n", "")),
        ("logs: {keep: 3} # x\r\n", "", "logs.keep", "4", ("logs: {keep: 4} # x\r\n", "")),
        ("logs: {keep: 3}\n", "# ours\nGATEWAY_LOGS_KEEP=9 # why\nA=1", "logs.keep", "4",
         ("logs: {keep: 3}\n", "# ours\nGATEWAY_LOGS_KEEP=4\nA=1")),
        ("", "A=1", "platforms.telegram.token", TOKEN, ("", f"A=1\nTELEGRAM_BOT_TOKEN={TOKEN}\n")),
        ("platforms: {telegram: {token: '${BOT}'}}\n", "BOT=old\n", "platforms.telegram.token", TOKEN,
         ("platforms: {telegram: {token: '${BOT}'}}\n", f"BOT={TOKEN}\n")),
        ("model: {provider: openai, name: m}\n", "OPENAI_API_KEY=sk-old\n", "model.api_key", "sk-new",
         ("model: {provider: openai, name: m}\n", "OPENAI_API_KEY=sk-new\n")),
        ("models: {fast: {provider: openai, name: m}}\n", "", "models.fast.api_key", "sk-new",
         ('models: {fast: {provider: openai, name: m, api_key: "${MODEL_FAST_API_KEY}"}}\n',
          "MODEL_FAST_API_KEY=sk-new\n")),
        ("", "", "tools.search.key", "bs-new", ("", "GATEWAY_TOOLS_SEARCH_KEY=bs-new\n")),
        ("tools: {search: {key: '${BRAVE}'}}\n", "BRAVE=bs-old\n", "tools.search.key", "bs-new",
         ("tools: {search: {key: '${BRAVE}'}}\n", "BRAVE=bs-new\n")),
        ("", "", "access.users.telegram", "17, 18", ("access:\n  users:\n    telegram: [17, 18]\n", "")),
        ("hooks: {each: {deep: {enabled: true}}}\n", "", "hooks.deep.options", "{a: '1'}",
         ('hooks: {each: {deep: {enabled: true, options: {a: "1"}}}}\n', "")),
        ("logs:\n  keep: 3\n# end\n", "", "logs.keep", None, ("# end\n", "")),
        ("logs: {keep: 3}\n", "\nexport GATEWAY_LOGS_KEEP=9\nA=1\n", "logs.keep", None,
         ("logs: {keep: 3}\n", "\nA=1\n")),
    ],
)  # fmt: skip
def test_a_setting_is_written_where_its_value_in_force_is_and_undo_gives_the_bytes_back(
    home: Home, config: str, env: str, key: str, value: str | None, wanted: tuple[str, str]
) -> None:
    write(home, config, env)
    change(home, key, value)
    assert texts(home) == wanted
    undo_change(home)
    assert texts(home) == (config, env)
    with pytest.raises(ConfigError, match="no change to take back"):
        undo_change(home)


@pytest.mark.parametrize(
    ("environ", "key", "value", "words"),
    [
        ({}, "sessions.resett", "idle", "`sessions.resett` is not known; did you mean `reset`"),
        ({}, "sessions.idle", "2 hours", "a duration such as 30s"),
        ({}, "sessions", "{idle: [1}", "the value cannot be read"),
        ({}, "sessions..idle", "1h", "not the name of a setting"),
        ({}, "logs.keep.most", "1", "its section is not a mapping"),
        ({"GATEWAY_LOGS_KEEP": "9"}, "logs.keep", "4", "set by the variable GATEWAY_LOGS_KEEP"),
        ({"TELEGRAM_BOT_TOKEN": TOKEN}, "platforms.telegram.token", "4:x", "set by the variable TELEGRAM_BOT_TOKEN"),
        ({"CREDENTIALS_DIRECTORY": "c"}, "logs.size", "4MB", "set by the credential gateway_logs_size"),
        ({}, "platforms.telegram.token", "${A}", "cannot be in .env"),
    ],
)
def test_what_no_file_can_set_or_would_be_wrong_is_refused_before_anything_is_written(
    home: Home, environ: Mapping[str, str], key: str, value: str, words: str
) -> None:
    write(home, "logs: {keep: 3}\n", "A=1\n")
    if "CREDENTIALS_DIRECTORY" in environ:
        (home.root / "c").mkdir()
        (home.root / "c/gateway_logs_size").write_text("5MB")
        environ = {"CREDENTIALS_DIRECTORY": str(home.root / "c")}
    with pytest.raises(ConfigError) as refused:
        change(home, key, value, **environ)
    assert words in str(refused.value)
    assert texts(home) == ("logs: {keep: 3}\n", "A=1\n")
    assert not home.config_undo.exists()


def test_the_key_of_the_search_comes_from_env_and_never_stands_in_the_file(home: Home) -> None:
    write(home, "tools: {search: {provider: brave, key: '${BRAVE_API_KEY}'}}\n", "BRAVE_API_KEY=bs-canary-1\n")
    loaded = load_configuration(SCHEMA, home, {})
    assert loaded.settings.tools.search.key.reveal() == "bs-canary-1"
    write(home, "tools: {search: {provider: brave, key: bs-canary-1}}\n")
    with pytest.raises(ConfigError, match=r"`tools\.search\.key` is a secret, and does not belong into this file"):
        load_configuration(SCHEMA, home, {})


def test_one_mistake_can_be_mended_beside_another(home: Home) -> None:
    write(home, "sessions: {idle: soon, resett: idle}\n")
    change(home, "sessions.idle", "1h")
    change(home, "sessions.resett", None)
    assert texts(home)[0] == "sessions: {idle: 1h}\n"


def test_a_file_that_changed_is_a_link_or_read_only_is_refused_with_the_lines(home: Home) -> None:
    write(home, "logs: {keep: 3}\n")
    plan = prepare_settings(SCHEMA, home, {}, {"logs.level": "debug"})
    same = prepare_settings(SCHEMA, home, {}, {"logs.level": "debug"})
    home.config.write_text("logs: {keep: 5}\n")
    assert plan.digest == same.digest != prepare_settings(SCHEMA, home, {}, {"logs.level": "debug"}).digest
    with pytest.raises(ConfigError, match=r"has changed meanwhile(.|\n)*logs:\n  level: debug"):
        write_change(home, plan)
    other = home.root / "other.env"
    other.write_text("A=1\n")
    home.env.symlink_to(other)
    with pytest.raises(ConfigError, match=r"is a link(.|\n)*TELEGRAM_BOT_TOKEN=\.\.\.") as refused:
        change(home, "platforms.telegram.token", TOKEN)
    assert TOKEN not in str(refused.value)
    home.env.unlink()
    os.link(other, home.env)
    with pytest.raises(ConfigError, match="is a link"):
        change(home, "platforms.telegram.token", TOKEN)
    assert (texts(home)[0], other.read_text()) == ("logs: {keep: 5}\n", "A=1\n")


def test_undo_leaves_alone_what_somebody_edited_since(home: Home) -> None:
    write(home, "models: {fast: {provider: openai, name: m}}\n")
    change(home, "models.fast.api_key", "sk-new")
    config = texts(home)[0]
    home.env.write_text("MODEL_FAST_API_KEY=sk-other\n")
    with pytest.raises(ConfigError, match="edited since"):
        undo_change(home)
    assert texts(home) == (config, "MODEL_FAST_API_KEY=sk-other\n")


def test_the_mode_of_a_file_stays(home: Home) -> None:
    write(home, "logs: {keep: 3}\n")
    home.config.chmod(0o640)
    change(home, "logs.keep", "4")
    assert home.config.stat().st_mode & 0o777 == 0o640
    change(home, "platforms.telegram.token", TOKEN)
    assert home.env.stat().st_mode & 0o777 == home.config_undo.stat().st_mode & 0o777 == 0o600


def test_a_part_of_a_key_with_a_dot_is_quoted() -> None:
    assert split_key('prices."gpt-4.1".input') == ("prices", "gpt-4.1", "input")


def try_env(seed: int, folder: Path) -> None:
    dice = random.Random(seed)
    line_break = dice.choice(("\n", "\n", "\r\n"))
    lines = [
        *(
            "A=1",
            "export B='zwei # 2'  # why",
            "# A=3",
            "",
            "  C = ü",
            'D="x\\ny"',
            "E",
            "F=",
            "A=last",
            "not a line",
            "G='1\n2'",
        ),
    ]
    lines = dice.sample(lines, dice.randint(0, len(lines)))
    data = (
        dice.choice(("", "\ufeff")) + line_break.join(lines) + dice.choice((line_break, "") if lines else ("",))
    ).encode()
    name, value = dice.choice("ABCDEFGH"), dice.choice(("x", "it's", 'a "b" # c', "ü b", "x\ny", "\\n", "$A", "a\\'"))
    path = folder / ".env"
    path.write_bytes(data)
    before = read_environment({}, path).environ
    is_removal = dice.random() < 0.3
    try:
        after = remove_variable(data, name) if is_removal else set_variable(data, name, value)
    except EditError:
        assert is_removal, (seed, name)
        assert name not in before, (seed, name)
        return
    path.write_bytes(after)
    wanted = {key: one for key, one in before.items() if key != name} | ({} if is_removal else {name: value})
    assert read_environment({}, path).environ == wanted, (seed, data, after)
    ours = ("G=", "2'") if name == "G" else (f"{name}=", f"export {name}=", f"  {name} =", name)
    kept = [line for line in split_lines(data) if not line.startswith(ours)]
    left = iter(split_lines(after))
    assert all(line in left for line in kept), (seed, data, after)


def split_lines(data: bytes) -> list[str]:
    return data.decode("utf-8-sig").replace("\r", "").split("\n")


def test_a_variable_changes_its_line_alone(tmp_path: Path) -> None:
    for seed in range(500):
        try_env(seed, tmp_path)
