"""One person: what the gateway holds of them, as an archive, or gone."""

from gateway.people.person import Person as Person
from gateway.people.person import parse_person as parse_person
from gateway.people.removal import PersonRemoval as PersonRemoval
from gateway.people.traces import PersonTraces as PersonTraces
