"""Its handle stands in a file beside it, which it finds as real hooks do."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from reexported_helper import handle  # noqa: E402, F401
