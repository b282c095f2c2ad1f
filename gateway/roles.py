"""The roles that people have, in one order: who has a higher one may do all that a lower one may, and more.

owner
    whose gateway it is: may do everything, and nobody else makes an owner. Whoever sits at the terminal is one
admin
    may use every command, and let others in
operator
    a user who keeps the gateway going: sees how it fares, without any word of people and models, pauses, resumes and
    has things tried again; approves nothing
user
    named by a rule, or let in by a code
guest
    nobody in particular: may speak because everybody may, in that chat or on that network

What may be done with which role is decided where it is done; here is only the order, so that it is the same everywhere.
"""

from typing import Literal, TypeAlias, get_args

Role: TypeAlias = Literal["owner", "admin", "operator", "user", "guest"]
Scope: TypeAlias = Literal["owner", "admin", "operator", "user"]

ROLES: tuple[Role, ...] = get_args(Role)  # the highest first


def rank_of(role: Role) -> int:
    """A number to compare roles by: the higher role has the higher one."""
    return len(ROLES) - ROLES.index(role)


def pick_low_role(*roles: Role) -> Role:
    """The role of what several people have caused."""
    return min(roles, key=rank_of)


def is_admin(role: Role) -> bool:
    """May they use every command?"""
    return role in ("owner", "admin")


def scope_of(role: Role) -> Scope:
    """The field `scope` of events: the role, where a guest is a user: what guards against users guards against them."""
    return "user" if role == "guest" else role
