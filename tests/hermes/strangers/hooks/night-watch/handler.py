"""The rules lie in a package of its own; this is only the door."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from nightwatch import handle  # noqa: F401
