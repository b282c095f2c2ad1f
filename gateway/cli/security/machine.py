"""Checks of the machine: the gateway's user and age, systemd's limits, and the trusted proxies of its port."""

from collections.abc import Iterator
from datetime import date
from ipaddress import ip_network
from pathlib import Path

from gateway.cli.doctor import check_configuration, check_version
from gateway.cli.security.target import AuditFault, AuditTarget, as_faults, make_check
from gateway.cli.security.tools import is_plain_http
from gateway.daemon.own_process import describe_readers
from gateway.daemon.webhooks import find_bad_secrets
from gateway.yaml_source.tree import SourceLocation

# The end of security fixes for a version of Python, as its makers have announced.
PYTHON_ENDS = {
    (3, 11): date(2027, 10, 31),
    (3, 12): date(2028, 10, 31),
    (3, 13): date(2029, 10, 31),
    (3, 14): date(2030, 10, 31),
}
FEWEST_BITS = {4: 16, 6: 48}  # of a network of proxies; a wider one includes other machines


@make_check("webhooks.short-secret", "warning", "anyone who guesses it can make the agent work")
def _find_bad_secrets(target: AuditTarget) -> Iterator[AuditFault]:
    if target.doctor.configuration:
        yield from as_faults(find_bad_secrets(target.doctor.configuration))


@make_check("config.wrong", "error", "the settings could not be checked")
def _find_wrong_settings(target: AuditTarget) -> Iterator[AuditFault]:
    """Report an unreadable configuration: without this, a check that cannot run would look like praise."""
    yield from as_faults(one for one in check_configuration(target.doctor) if one.severity == "error")


@make_check("process.root", "notice", "an error of the gateway can affect the whole host")
def _find_root(target: AuditTarget) -> Iterator[AuditFault]:
    if what := describe_readers(target.uid):
        remedy = "run it as a user of its own: see systemd/system/chat-gateway.service"
        yield AuditFault(SourceLocation("the user of the gateway"), what, remedy)


@make_check("version.old", "warning", "the running program lacks later security fixes")
def _find_old_daemon(target: AuditTarget) -> Iterator[AuditFault]:
    yield from as_faults(check_version(target.doctor))


@make_check("version.python", "warning", "its known weaknesses stay")
def _find_old_python(target: AuditTarget) -> Iterator[AuditFault]:
    end = PYTHON_ENDS.get(target.python)
    if end and target.today > end:
        name = ".".join(map(str, target.python))
        what = f"Python {name} has had no security fixes since {end}"
        yield AuditFault(SourceLocation(f"Python {name}"), what, "install the gateway with a newer Python")


def _read_service(unit: Path) -> dict[str, str]:
    """Return the keys of a unit and of its changes by `systemctl edit`, the last of each."""
    found = {}
    for file in (unit, *sorted(unit.with_name(f"{unit.name}.d").glob("*.conf"))):
        try:
            lines = file.read_text(errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            key, equals, value = line.strip().partition("=")
            if equals and not key.startswith(("#", ";")):
                found[key.strip()] = value.strip()
    return found


def _find_unit_lacks(target: AuditTarget, key: str, *wanted: str) -> Iterator[AuditFault]:
    """Find units of ours that do not set this key to one of the `wanted` values."""
    for unit in target.units:
        if _read_service(unit).get(key, "").lower() not in wanted:
            yield AuditFault(
                SourceLocation(str(unit)),
                f"it does not say {key}={wanted[0]}",
                f"{_name_edit(unit)}, and write: [Service] {key}={wanted[0]}",
            )


@make_check("unit.root", "error", "an error of the gateway can affect the whole host")
def _find_unit_root(target: AuditTarget) -> Iterator[AuditFault]:
    for unit in target.units:
        said = _read_service(unit)
        is_root = said.get("User", "root") in ("root", "0") and said.get("DynamicUser", "no") != "yes"
        if not _is_of_person(unit) and is_root:
            remedy = f"{_name_edit(unit)}, and write: [Service] User=hermes-gateway"
            yield AuditFault(SourceLocation(str(unit)), "it starts the gateway as root", remedy)


def _is_of_person(unit: Path) -> bool:
    return unit.parent.name == "user"


def _name_edit(unit: Path) -> str:
    return f"run: systemctl {'--user ' if _is_of_person(unit) else ''}edit {unit.stem}"


@make_check("web.wide-proxies", "error", "any of them says who asks and from where")
def _find_wide_proxies(target: AuditTarget) -> Iterator[AuditFault]:
    for written in target.settings.web.trusted_proxies:
        network = ip_network(written)
        if network.prefixlen < FEWEST_BITS[network.version]:
            what = f"every address of {written} is believed as a proxy"
            remedy = "name the proxy itself, for instance: web: {trusted_proxies: [10.0.0.2]}"
            yield AuditFault(target.place_of("web.trusted_proxies"), what, remedy)


@make_check("web.plain-url", "error", "anyone on the network path can read the page and take over logins")
def _find_plain_url(target: AuditTarget) -> Iterator[AuditFault]:
    if is_plain_http(url := target.settings.web.url):
        what = f"people reach the page at {url}, unencrypted"
        yield AuditFault(target.place_of("web.url"), what, f"web: {{url: 'https{url.removeprefix('http')}'}}")


@make_check(
    "unit.no-hardening", "warning", "what the gateway starts can gain rights that it has not (sudo, setuid programs)"
)
def _find_no_hardening(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_unit_lacks(target, "NoNewPrivileges", "yes", "true", "on", "1")


@make_check("unit.core-dumps", "warning", "a core of it holds every token")
def _find_core_dumps(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_unit_lacks(target, "LimitCORE", "0")


@make_check("unit.open-umask", "warning", "others can read what it writes")
def _find_open_umask(target: AuditTarget) -> Iterator[AuditFault]:
    return _find_unit_lacks(target, "UMask", "0077", "077")
