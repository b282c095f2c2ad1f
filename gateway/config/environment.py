"""Values from outside the file: the process's environment, systemd's credentials, and `.env`, in that order.

Each value comes with its place, and an empty value counts as unset. The environment itself is never changed.
"""

import io
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import SplitResult

from dotenv.parser import parse_stream

from gateway.files.folders import read_plain_file
from gateway.yaml_source.tree import Finding, SourceLocation

ENV_FILE_LIMIT = 1_000_000
CREDENTIAL_LIMIT = 64_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}$]*+(?:\$(?!\{)[^}$]*+)*+))?\}")


Layer: TypeAlias = Literal["process", "credential", "file"]


class SourcedValue(NamedTuple):
    """A variable's value and where it was set."""

    text: str
    place: SourceLocation
    layer: Layer = "process"


class Environment(NamedTuple):
    """All variables, with the strongest layer's value for each; and the findings about the sources."""

    values: Mapping[str, SourcedValue]
    findings: tuple[Finding, ...]

    @property
    def environ(self) -> dict[str, str]:
        return {name: value.text for name, value in self.values.items()}


def read_environment(environ: Mapping[str, str], env_file: Path, draft: bytes | None = None) -> Environment:
    """All variables; `draft` is what `.env` is to hold."""
    findings: list[Finding] = []
    values = dict(_read_env_file(env_file, draft, environ, findings))
    directory = environ.get("CREDENTIALS_DIRECTORY", "")
    if directory:
        values |= dict(_read_credentials(Path(directory), findings))
    values |= {
        name: SourcedValue(text, SourceLocation(f"the variable {name}")) for name, text in environ.items() if text
    }
    return Environment(values, tuple(findings))


def expand_references(text: str, environ: Mapping[str, str]) -> str:
    """Replace `${NAME}` and `${NAME:-otherwise}` in the text; a name that is not set becomes an empty text."""
    return _REFERENCE.sub(lambda found: environ.get(found[1]) or found[2] or "", text)


def find_references(text: str) -> list[str]:
    """List the names that a text needs: those without an `otherwise`."""
    return [found[1] for found in _REFERENCE.finditer(text) if found[2] is None]


def find_proxy(url: SplitResult, environ: Mapping[str, str]) -> str:
    """Return the address of the proxy between this machine and `url`; an empty text without one.

    The variables are HTTPS_PROXY and its kin; a name in small letters counts more. NO_PROXY lists hosts with all below
    them, hosts with a port, or `*`.
    """
    named = {name.lower(): value.strip() for name, value in sorted(environ.items())}
    if any(_is_meant(one.strip().lower(), url) for one in named.get("no_proxy", "").split(",")):
        return ""
    address = named.get(f"{url.scheme}_proxy") or named.get("all_proxy", "")
    return f"http://{address}" if address and "://" not in address else address


def _is_meant(named: str, url: SplitResult) -> bool:
    host = url.hostname or ""
    below = f".{named.lstrip('.')}"
    return named in ("*", host, f"{host}:{url.port}") or (bool(named) and f".{host}".endswith(below))


def _read_credentials(directory: Path, findings: list[Finding]) -> Iterator[tuple[str, SourcedValue]]:
    try:
        for path in sorted(directory.iterdir()):
            if _NAME.match(path.name) and stat.S_ISREG(path.stat().st_mode):
                text = read_plain_file(path, CREDENTIAL_LIMIT + 1).decode().rstrip("\r\n")
                if text and len(text) <= CREDENTIAL_LIMIT:
                    place = SourceLocation(f"the credential {path.name}")
                    yield path.name.upper(), SourcedValue(text, place, "credential")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        what = f"the credentials cannot be read: {reason}"
        findings.append(Finding(SourceLocation(str(directory)), what, "see LoadCredential= in the systemd unit"))


def _read_env_file(
    path: Path, draft: bytes | None, environ: Mapping[str, str], findings: list[Finding]
) -> Iterator[tuple[str, SourcedValue]]:
    text = _read_env_text(path, findings) if draft is None else draft.decode("utf-8-sig")
    known = dict(environ)
    for binding in parse_stream(io.StringIO(text)):
        above = binding.original.string
        blank = above[: len(above) - len(above.lstrip())].count("\n")  # empty lines belong to what follows them
        place = SourceLocation(str(path), binding.original.line + blank, 1)
        if binding.error:
            findings.append(Finding(place, "this line cannot be read", "write NAME=value", "warning"))
        elif binding.key and binding.value:
            value = expand_references(binding.value, known)
            known.setdefault(binding.key, value)
            if value:
                yield binding.key, SourcedValue(value, place, "file")


def _read_env_text(path: Path, findings: list[Finding]) -> str:
    try:
        data = read_plain_file(path, ENV_FILE_LIMIT + 1)
        if len(data) <= ENV_FILE_LIMIT:
            return data.decode("utf-8-sig")
        what, remedy = "too large for a file of secrets", "keep only secrets in it"
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        what, remedy = f"cannot be read: {reason}", "make it a text file that you can read"
    findings.append(Finding(SourceLocation(str(path)), what, remedy))
    return ""
