"""Message parts other than text and files: stickers, places, contacts, polls; as data, and in words for a model.

A network may send anything in them, so they are made here from values that can be trusted: finite numbers, and texts of
one line without brackets, so that no text passes for another part.
"""

from collections.abc import Iterable
from typing import TypeAlias, TypeGuard

from msgspec import Struct

LONGEST_NAME, LONGEST_LINE = 100, 300  # characters
MOST_OPTIONS = 20
FEWEST_OPTIONS, MOST_SENT = 2, 10  # options of a poll that we send


class Sticker(Struct, frozen=True, kw_only=True, tag_field="kind", tag="sticker"):
    """A small picture that expresses a feeling."""

    emoji: str = ""
    name: str = ""


class Location(Struct, frozen=True, kw_only=True, tag_field="kind", tag="location"):
    """A place on earth, in degrees; with a title and an address if it has them."""

    latitude: float
    longitude: float
    title: str = ""
    address: str = ""


class Contact(Struct, frozen=True, kw_only=True, tag_field="kind", tag="contact"):
    """A person's name and phone number."""

    name: str
    phone: str = ""


class Poll(Struct, frozen=True, kw_only=True, tag_field="kind", tag="poll"):
    """A question that a chat votes on."""

    question: str
    options: tuple[str, ...]


MessagePart: TypeAlias = Sticker | Location | Contact | Poll


def make_sticker(emoji: object, name: object = "") -> Sticker:
    return Sticker(emoji=to_one_line(emoji, LONGEST_NAME), name=to_one_line(name, LONGEST_NAME))


def make_location(latitude: object, longitude: object, title: object = "", address: object = "") -> Location | None:
    """Make a location; None if the coordinates are invalid."""
    if not (_is_within(latitude, 90) and _is_within(longitude, 180)):
        return None
    return Location(
        latitude=float(latitude),
        longitude=float(longitude),
        title=to_one_line(title, LONGEST_NAME),
        address=to_one_line(address, LONGEST_LINE),
    )


def make_contact(name: object, phone: object = "") -> Contact:
    return Contact(name=to_one_line(name, LONGEST_NAME), phone=to_one_line(phone, LONGEST_NAME))


def make_poll(question: object, options: Iterable[object]) -> Poll:
    """Make a poll of the first options, up to the limit of the networks."""
    found = [to_one_line(one, LONGEST_NAME) for one, _ in zip(options, range(MOST_OPTIONS), strict=False)]
    return Poll(question=to_one_line(question, LONGEST_LINE), options=tuple(found))


def describe_parts(parts: Iterable[MessagePart]) -> str:
    """Describe the parts for a model."""
    return " ".join(f"[{_describe_part(one)}]" for one in parts)


def add_words(text: str, parts: Iterable[MessagePart]) -> str:
    """Append words for these parts to a text for people, for networks that cannot show the parts."""
    return "\n\n".join(filter(None, [text, *map(show_part, parts)]))


def take_words(text: str, part: MessagePart) -> str | None:
    """Return the text without the words for this part at its end; None if it does not end with them."""
    words = show_part(part)
    return text.removesuffix(words).rstrip("\n") if text.endswith(words) else None


def show_part(part: MessagePart) -> str:
    """Describe the part for people."""
    match part:
        case Poll():
            return "\n".join([part.question, *(f"{at}. {one}" for at, one in enumerate(part.options, 1))])
        case _:
            return _describe_part(part).partition(" ")[2]


def _describe_part(part: MessagePart) -> str:
    match part:
        case Sticker():
            return f"sticker {part.emoji or part.name}".rstrip()
        case Location():
            where = f"{part.latitude}, {part.longitude}"
            named = ", ".join(filter(None, [part.title, part.address]))
            return f"place: {named} ({where})" if named else f"location: {where}"
        case Contact():
            return f"contact: {part.name} {part.phone}".rstrip()
        case Poll():
            return f"poll: {part.question} {' / '.join(part.options)}".rstrip()


def _is_within(degrees: object, most: float) -> TypeGuard[float]:
    """Return True for a number in range; NaN is never in range."""
    return isinstance(degrees, int | float) and -most <= degrees <= most


def check_part(part: Poll | Location) -> Poll | Location:
    """Return the part if networks accept it.

    Raises:
        ValueError: the part is invalid; the message says why.
    """
    if isinstance(part, Location):
        if place := make_location(part.latitude, part.longitude, part.title, part.address):
            return place
        raise ValueError("a location has a latitude of -90 to 90 and a longitude of -180 to 180")
    poll = make_poll(part.question, part.options)
    if poll != part or not poll.question or not all(poll.options):
        raise ValueError(
            f"a poll has a question of at most {LONGEST_LINE} characters and options of at most {LONGEST_NAME}, each on"
            " one line and without brackets"
        )
    if not FEWEST_OPTIONS <= len(set(poll.options)) == len(poll.options) <= MOST_SENT:
        raise ValueError(f"a poll has {FEWEST_OPTIONS} to {MOST_SENT} options, each another")
    return poll


def to_one_line(text: object, longest: int) -> str:
    """Return a foreign text on one line, without brackets and invisible characters."""
    said = text[: 4 * longest] if isinstance(text, str) else ""
    plain = "".join(sign if sign.isprintable() else " " for sign in said if sign not in "[]")
    return " ".join(plain.split())[:longest]
