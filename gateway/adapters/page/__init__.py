"""The page's chat as a platform: `web`. Its people are known by the port; what they say comes in by `PageChat`."""
