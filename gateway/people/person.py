"""A person as people write it: `telegram:1002`; and the pseudonym after forgetting.

A pseudonym replaces the id in sums and in the activity log. It is made of the id with a secret of this home, in the
journal: without the secret it reveals nothing; a person forgotten twice has one pseudonym.
"""

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

from gateway.access.access_control import INTERNAL
from gateway.engine.interface import Engine, NewRecord
from gateway.errors import AccessError, Conflict
from gateway.records import records, subjects

LONGEST = 300
WEBHOOK = "webhook"
NETWORK_NAME = re.compile(r"[\w-]+")
SALT_BYTES = 32
SHOWN_CHARACTERS = 10


class Person(NamedTuple):
    """A person on a network, by the network's own id."""

    platform: str
    user_id: str

    def __str__(self) -> str:
        return f"{self.platform}:{self.user_id}"

    @property
    def payers(self) -> tuple[str, ...]:
        """The names under which their usage is counted."""
        return (str(self), self.user_id) if self.platform == INTERNAL else (str(self),)


def parse_person(written: str) -> Person:
    """Parse a person; raises AccessError for anything else.

    Tasks of a webhook are its own, and usage reports name it `webhook:NAME`.
    """
    platform, colon, user_id = written.strip().partition(":")
    if platform == WEBHOOK and user_id:
        return Person(INTERNAL, f"{WEBHOOK}:{user_id}")
    if not colon or not NETWORK_NAME.fullmatch(platform) or not user_id or len(written) > LONGEST:
        raise AccessError(
            f"{written[:60]!r} is not an id\nwrite the network, a colon, and the id there: hermes-gateway people list"
        )
    return Person(platform, user_id)


async def find_pseudonym(engine: Engine, person: Person) -> str:
    """Return a pseudonym such as `forgotten:1f0c…`, in the form of an id."""
    return make_pseudonym(await find_salt(engine), person)


def make_pseudonym(salt: str, person: Person) -> str:
    digest = hmac.new(bytes.fromhex(salt), str(person).encode("utf-8", "surrogatepass"), hashlib.sha256)
    return f"forgotten:{digest.hexdigest()[:SHOWN_CHARACTERS]}"


async def find_salt(engine: Engine) -> str:
    """Return the secret of this journal's pseudonyms, created at the first use."""
    while True:
        seq, kept = await records.read_last(engine, subjects.PSEUDONYM_SUBJECT, records.PseudonymSalt)
        if kept:
            return kept.salt
        made = records.PseudonymSalt(salt=secrets.token_hex(SALT_BYTES))
        try:
            await engine.append(NewRecord(subjects.PSEUDONYM_SUBJECT, records.encode(made), expect=seq))
        except Conflict:
            continue
        return made.salt
