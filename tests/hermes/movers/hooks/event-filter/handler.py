"""Installs a filter in front of the gateway's message handler when the gateway starts."""

import functools
import logging
import re
from pathlib import Path

import yaml

logger = logging.getLogger("hooks.event-filter")
CONFIG = Path(__file__).with_name("filters.yaml")


class Filters:
    def __init__(self, path):
        raw = yaml.safe_load(path.read_text()) or {}
        self.patterns = [re.compile(p, re.IGNORECASE) for p in raw.get("drop", [])]

    def matches(self, text):
        return any(p.search(text or "") for p in self.patterns)


def _install():
    from gateway.run import GatewayRunner

    if getattr(GatewayRunner, "_event_filter_installed", False):
        return
    filters = Filters(CONFIG)
    original = GatewayRunner._handle_message

    @functools.wraps(original)
    async def _filtered(self, event, *args, **kwargs):
        if filters.matches(event.text):
            logger.info("dropped %r", event.text[:40])
            return "(dropped)"
        return await original(self, event, *args, **kwargs)

    GatewayRunner._handle_message = _filtered
    GatewayRunner._event_filter_installed = True


async def handle(event_type, context):
    try:
        _install()
    except Exception as exc:
        logger.warning("event-filter not installed: %s", exc)
