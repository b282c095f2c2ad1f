"""Errors that come in groups, because what failed was done by several tasks at once."""


def find_first_error(group: BaseExceptionGroup[Exception]) -> Exception:
    """The error that counts."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, Exception)
    return error
