"""Has a module of its own that is called as one of Hermes's."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))

from tools import note  # noqa: E402


def handle(event_type, context):
    note("own-tools", event_type)
