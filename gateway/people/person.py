"""Who is meant, as people write it: `telegram:1002`; and what they are called once they are forgotten.

A pseudonym stands in sums and in the record of activity where the id stood. It is made from the id with a secret of
this home, which stands in the journal: without that nobody tells from it who it was; forgotten twice, one has one.
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
    """Somebody on a network, by the network's own id."""

    platform: str
    user_id: str

    def __str__(self) -> str:
        return f"{self.platform}:{self.user_id}"

    @property
    def payers(self) -> tuple[str, ...]:
        """The names under which their usage is counted."""
        return (str(self), self.user_id) if self.platform == INTERNAL else (str(self),)


def parse_person(written: str) -> Person:
    """Raises AccessError: it is none.

    What a webhook had done is its own, and is called `webhook:NAME` where usage is shown.
    """
    platform, colon, user_id = written.strip().partition(":")
    if platform == WEBHOOK and user_id:
        return Person(INTERNAL, f"{WEBHOOK}:{user_id}")
    if not colon or not NETWORK_NAME.fullmatch(platform) or not user_id or len(written) > LONGEST:
        raise AccessError(
            f"{written[:60]!r} is nobody's id\nwrite the network, a colon, and the id there: hermes-gateway people list"
        )
    return Person(platform, user_id)


async def find_pseudonym(engine: Engine, person: Person) -> str:
    """As `forgotten:1f0c…`: it stands where an id stands."""
    return make_pseudonym(await find_salt(engine), person)


def make_pseudonym(salt: str, person: Person) -> str:
    digest = hmac.new(bytes.fromhex(salt), str(person).encode("utf-8", "surrogatepass"), hashlib.sha256)
    return f"forgotten:{digest.hexdigest()[:SHOWN_CHARACTERS]}"


async def find_salt(engine: Engine) -> str:
    """From what pseudonyms are made in this journal."""
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
