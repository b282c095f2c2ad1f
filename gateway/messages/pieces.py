"""What of a turn's words came from which message, so that those of one can go and the others stay.

A turn often answers several messages at once: then they are one entry of its transcript, and a piece of that each. What
was said to others before, and is told with them, is a piece of it too.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import msgspec

from gateway.messages.message import Address, HeardWords, Message
from gateway.messages.transcript import Entry

DELETED = "[deleted by its author]"
OF_OTHERS = "[said by somebody else]"
HEARD_HEAD = "[What was said in this chat before, to others than you. It is context, and asks nothing of you:]"
HEARD_END = "[End of what was said before.]"
NAME_SIGNS = frozenset("[]():<>")  # with which a name could pass for more than a name
LONGEST_NAME = 60
SAID_KINDS = ("text", "edit", "command")  # of these the id is that of something which its author can delete
NOWHERE = -1  # the entry of a piece whose words stand in none: hooks took them out, or the turn was stopped before


class MessageName(msgspec.Struct, frozen=True):
    """By which a network knows a message: where it stands, and its own id there, which an edit does not change."""

    platform: str
    chat: str
    id: str


class MessagePiece(msgspec.Struct, frozen=True, kw_only=True):
    """The words of one message: `spans` (begin, end) of the entry of this number in its turn; none: all of that.

    `has_files`: files came with it, of which the entry may hold pictures. `entry` can be `NOWHERE`.
    """

    name: MessageName
    by: str
    entry: int = 0
    spans: tuple[tuple[int, int], ...] = ()
    has_files: bool = False


def name_of(message: Message) -> MessageName:
    at = message.address
    return MessageName(at.platform, at.chat_id, message.id.partition(":")[0])


def list_heard(messages: Sequence[Message]) -> tuple[HeardWords, ...]:
    """What was said to others before these messages, each once."""
    return tuple({one.id: one for message in messages for one in message.heard}.values())


def quote_heard(at: Address, heard: Sequence[HeardWords]) -> tuple[str, tuple[MessagePiece, ...]]:
    """What the agent is told of it, before what it is asked, and where in that the words of each are.

    Each line is marked, so that nothing in it passes for the words of whoever asks, nor of somebody else.
    """
    if not heard:
        return "", ()
    text, pieces = f"{HEARD_HEAD}\n", list[MessagePiece]()
    for one in heard:
        said_by = " ".join(one.user_name.split())
        name = "".join(sign for sign in said_by if sign.isprintable() and sign not in NAME_SIGNS)[:LONGEST_NAME]
        text += f"> {name} ({one.user_id}): ".replace("  ", " ")
        words = "\n>   ".join(one.text.splitlines())
        told, spans = MessageName(at.platform, at.chat_id, one.id), ((len(text), len(text) + len(words)),)
        pieces.append(MessagePiece(name=told, by=f"{at.platform}:{one.user_id}", spans=spans))
        text += f"{words}\n"
    return f"{text}{HEARD_END}\n\n", tuple(pieces)


def find_pieces(messages: Sequence[Message], content: str) -> tuple[MessagePiece, ...]:
    """Which part of an entry each message is; before them stands what they were told of others, behind their texts what
    is said of their files."""
    block, heard = quote_heard(messages[-1].address, list_heard(messages))
    if not content.startswith(block):
        block, heard = "", ()
    joined = "\n\n".join(one.text for one in messages if one.text)
    is_exact = content.startswith(joined, len(block)) and (len(messages) > 1 or bool(block))
    pieces, at, behind = list(heard), len(block), len(block) + len(joined)
    for one in messages:
        spans = [(at, at + len(one.text))] if is_exact and one.text else []
        at += len(one.text) + 2 if one.text else 0
        if is_exact and one.attachments:
            spans.append((behind, len(content)))
        if one.kind in SAID_KINDS:
            pieces.append(
                MessagePiece(name=name_of(one), by=one.sender, spans=tuple(spans), has_files=bool(one.attachments))
            )
    return tuple(pieces)


def add_missing_pieces(pieces: Sequence[MessagePiece], messages: Sequence[Message]) -> tuple[MessagePiece, ...]:
    """The pieces of a turn, and those of its messages, and of what these were told, that stand in none of its entries.

    So whoever takes such a message back, or is forgotten, is found here all the same: other words may quote theirs.
    """
    shown = {one.name for one in pieces}
    named = {name_of(one): one.sender for one in messages if one.kind in SAID_KINDS}
    for message in messages:
        at = message.address
        named |= {MessageName(at.platform, at.chat_id, one.id): f"{at.platform}:{one.user_id}" for one in message.heard}
    missing = (MessagePiece(name=name, by=by, entry=NOWHERE) for name, by in named.items() if name not in shown)
    return (*pieces, *missing)


def list_shown_messages(pieces: Iterable[MessagePiece]) -> set[MessageName]:
    """The messages whose words a conversation has."""
    return {one.name for one in pieces if one.entry != NOWHERE}


def put_pieces(pieces: Sequence[MessagePiece], made: Entry, entries: Sequence[Entry]) -> tuple[MessagePiece, ...]:
    """The pieces of an entry as they are in what became of its turn: hooks may have put it in other words."""
    place = next((at for at, entry in enumerate(entries) if entry.role == "user"), None)
    if place is None:
        return ()
    changes = {"entry": place} if entries[place].content == made.content else {"entry": place, "spans": ()}
    return tuple(one if one.entry == NOWHERE else msgspec.structs.replace(one, **changes) for one in pieces)


def delete_pieces(
    entries: tuple[Entry, ...], pieces: tuple[MessagePiece, ...], gone: Collection[MessageName], mark: str = DELETED
) -> tuple[tuple[Entry, ...], tuple[MessagePiece, ...]]:
    """The entries of a turn without the words of these messages (a mark stands there), and the pieces that are left."""
    left = list(pieces)
    found = list(entries)
    while piece := next((one for one in left if one.name in gone), None):
        left.remove(piece)
        if not 0 <= piece.entry < len(found):
            continue
        entry = found[piece.entry]
        spans = piece.spans or ((0, len(entry.content)),)
        content = entry.content
        for number, (begin, end) in reversed(list(enumerate(spans))):
            instead = "" if number else mark
            content = content[:begin] + instead + content[end:]
            left = [_move(one, piece.entry, end, len(instead) - (end - begin)) for one in left]
        found[piece.entry] = replace(entry, content=content, parts=() if piece.has_files else entry.parts)
        if not piece.spans:  # all of the entry went, and with it what others had said in it
            left = [one for one in left if one.entry != piece.entry]
    return tuple(found), tuple(left)


def _move(piece: MessagePiece, entry: int, behind: int, by: int) -> MessagePiece:
    """The piece, where the text of its entry behind a place has moved."""
    if piece.entry != entry:
        return piece
    moved = tuple((begin + by, end + by) if begin >= behind else (begin, end) for begin, end in piece.spans)
    return msgspec.structs.replace(piece, spans=moved)
