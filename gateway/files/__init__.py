"""The folders of conversations, and the lines of long files."""
