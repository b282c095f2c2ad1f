"""The page's chat as a platform: `web`. The port authenticates its people; their messages come in by `PageChat`."""
