"""Hermes's own config.yaml, as far as hooks and plugins are concerned: read leniently, and never written."""

from pathlib import Path

from gateway.hermes.config import HermesConfig, HermesHooks

FILE = """
base: &base {a: 1}
other: *base
plugins:
  enabled: [moon, memory/sun]
  disabled: rain
  entries: {moon: {size: 7}, sun: no mapping}
hooks:
  enabled: true
  pre_tool_call:
    - {command: "guard.sh --all", matcher: "shell|web", timeout: 1000, fail_closed: true}
    - {command: slow.sh, timeout: soon}
    - {matcher: none}
  outbound:
    - {url: "https://example.com/x", events: [post_tool_call], secret_env: SECRET}
    - {url: "https://example.com/y"}
"""


def test_what_there_is_is_read_though_other_parts_are_odd(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(FILE)
    found = HermesConfig(path).read()
    assert found.enabled == {"moon", "memory/sun"}
    assert found.disabled == {"rain"}
    assert found.entries == {"moon": {"size": 7}}
    first, second = found.shell
    assert (first.event, first.command, first.matcher) == ("pre_tool_call", "guard.sh --all", "shell|web")
    assert (first.timeout, first.fail_closed, second.timeout) == (300, True, 60)
    (webhook,) = found.outbound
    assert (webhook.events, webhook.secret_env, webhook.timeout) == (("post_tool_call",), "SECRET", 10)
    told = [finding.what for finding in found.findings if finding.severity == "warning"]
    assert any("has no command" in one for one in told)
    assert any("no events" in one for one in told)
    assert any("timeout: soon" in one for one in told)


def test_a_change_is_seen_and_a_broken_file_takes_nothing_away(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    config = HermesConfig(path)
    assert config.read() == HermesHooks()
    path.write_text("plugins: {enabled: [moon]}")
    assert config.read().enabled == {"moon"}
    path.write_text("plugins: {enabled: [moon, sun]}")
    assert config.read().enabled == {"moon", "sun"}
    path.write_text("plugins: [")
    assert config.read().enabled == {"moon", "sun"}
    path.unlink()  # its shell hooks may be guards: a file that is gone opens none of them
    assert config.read().enabled == {"moon", "sun"}
    assert config.trouble == f"{path} cannot be read: No such file or directory"


def test_nothing_counts_in_hermes_safe_mode(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(FILE)
    assert HermesConfig(path, is_safe=True).read().is_empty
