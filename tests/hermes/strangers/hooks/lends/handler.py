"""Its rules are shared with other hooks and lie beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_shared"))

from watchwords import make_handler

handle = make_handler("lends")
