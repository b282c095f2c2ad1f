"""What the environment says of the bell."""

import os

TOKEN = os.environ.get("BELL_TOKEN", "")
SOUND = os.getenv("BELL_SOUND") or "ding"
