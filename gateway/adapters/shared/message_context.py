"""What a text is about or where it comes from, said before it, so that nobody takes others' words for the sender's."""

LONGEST_QUOTE = 500  # characters of what somebody replies to


def add_context(text: str, *, forwarded_from: str = "", quoted: str = "") -> str:
    """The text of a message that was forwarded, or that answers another one."""
    if forwarded_from:
        return f"[forwarded from {to_plain_name(forwarded_from)}]\n{text}"
    return f"[in reply to: {quoted[:LONGEST_QUOTE]}]\n{text}" if quoted else text


def to_plain_name(name: str) -> str:
    """A name as others chose it: no brackets, no lines, nothing with which it could pass for more than a name."""
    return " ".join("".join(sign for sign in name if sign not in "[]").split())[:100]
