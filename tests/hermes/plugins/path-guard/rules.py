"""Which argument of a tool is a path, and which paths are private."""

from pathlib import PurePosixPath

PATH_ARGUMENTS = {"read_file": "path", "write_file": "path", "patch": "path", "search_files": "path"}
PRIVATE = {".env", ".ssh", "id_rsa", "secrets"}


def is_private(path):
    return bool(PRIVATE & set(PurePosixPath(path).parts))
