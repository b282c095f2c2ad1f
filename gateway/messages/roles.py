"""The roles of people, in one order: a higher role includes all rights of a lower one.

    owner
        the person whose gateway it is: may do everything, and only owners make owners. A person at the terminal is one
    admin
        may use every command, and authorize other people
    operator
        a user who keeps the gateway going: sees its state, without any word of people and models, pauses, resumes and
        retries; approves nothing
    user
        named by a rule, or paired by a code
    guest
        anyone else, in a chat or on a network where everybody may write

The rights of a role are decided where they are used; this module has only the order, so that it is the same everywhere.
"""

from typing import Literal, TypeAlias, get_args

Role: TypeAlias = Literal["owner", "admin", "operator", "user", "guest"]
KeyRole: TypeAlias = Literal["user", "operator", "desk"]  # of a program; `desk` asks before a tool, and nothing else
Scope: TypeAlias = Literal["owner", "admin", "operator", "user"]

ROLES: tuple[Role, ...] = get_args(Role)  # the highest first


def rank_of(role: Role) -> int:
    """Return a number to compare roles by: the higher role has the higher one."""
    return len(ROLES) - ROLES.index(role)


def pick_low_role(*roles: Role) -> Role:
    """Return the lowest role, for an action that several people have caused."""
    return min(roles, key=rank_of)


def is_admin(role: object) -> bool:
    """Return True for a role that may use every command."""
    return role in ("owner", "admin")


def scope_of(role: Role) -> Scope:
    """Return the field `scope` of events: the role, but `user` for a guest, whom the same guards should stop."""
    return "user" if role == "guest" else role
