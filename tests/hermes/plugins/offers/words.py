"""What it says."""

GREETING = "good evening"
