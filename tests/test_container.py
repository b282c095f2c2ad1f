"""The container is described alike in several places. `./x image` builds it and runs it."""

import json
import re
import tomllib
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import yaml

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.home import Home
from gateway.config.loading import load_configuration
from gateway.installation import IMAGE_RECEIPT

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
MANIFESTS = list(yaml.safe_load_all((ROOT / "docs/kubernetes.yaml").read_text("utf-8")))
SERVICE = COMPOSE["services"]["gateway"]
ENVIRON = dict(re.findall(r"\b([A-Z_]+)=(\S+)", DOCKERFILE.partition("\nENV PATH")[2].partition("\nUSER")[0]))


def web_of(environ: dict[str, str], home: Path) -> Any:
    """Raises ConfigError: the gateway would not start like this."""
    return load_configuration(load_settings_schema(), Home(home), environ).settings.web


def test_the_image_starts_and_is_reached_through_the_host_alone(tmp_path: Path) -> None:
    web = web_of(ENVIRON, tmp_path)
    assert (web.listen, web.url) == ("0.0.0.0:8730", "http://127.0.0.1:8730")
    assert "EXPOSE 8730" in DOCKERFILE


def test_the_image_says_that_the_program_came_with_it() -> None:
    (prefix,) = re.findall(r"touch (\S+)/" + IMAGE_RECEIPT, DOCKERFILE)
    assert f"COPY --from=build {prefix} {prefix}\n" in DOCKERFILE


def test_compose_publishes_the_page_on_this_machine_alone(tmp_path: Path) -> None:
    web = web_of({**ENVIRON, **SERVICE["environment"]}, tmp_path)
    assert SERVICE["ports"] == ["127.0.0.1:8730:8730"]
    (network,) = COMPOSE["networks"]["own"]["ipam"]["config"]
    assert list(web.trusted_proxies) == [network["gateway"]]
    assert IPv4Address(network["gateway"]) in IPv4Network(network["subnet"])
    assert SERVICE["read_only"]


def test_kubernetes_has_one_that_nobody_in_the_cluster_reaches(tmp_path: Path) -> None:
    volume, deployment = MANIFESTS
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]["type"]) == (1, "Recreate")
    environ = {one["name"]: one["value"] for one in container["env"]}
    assert web_of({**ENVIRON, **environ}, tmp_path).listen == "127.0.0.1:8730"
    assert pod["securityContext"]["runAsUser"] == int(re.findall(r"^USER (\d+)", DOCKERFILE, re.MULTILINE)[0])
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == volume["metadata"]["name"]
    assert container["volumeMounts"][0]["mountPath"] in re.findall(r"^VOLUME (\S+)", DOCKERFILE, re.MULTILINE)


def test_whether_it_is_well_is_asked_alike_everywhere() -> None:
    asked = json.loads(re.findall(r"HEALTHCHECK.*\\\n +CMD (\[.*\])", DOCKERFILE)[0])
    (container,) = MANIFESTS[1]["spec"]["template"]["spec"]["containers"]
    assert container["livenessProbe"]["exec"]["command"] == container["startupProbe"]["exec"]["command"] == asked
    ready = [word.replace("/health", "/ready") for word in asked]
    assert container["readinessProbe"]["exec"]["command"] == ready


def test_all_that_is_built_from_is_sent_along() -> None:
    sent = re.findall(r"^!/(\S+)", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    assert [name for name in sent if not (ROOT / name).exists()] == []
    assert {*re.findall(r"[\w.-]+\.lock", DOCKERFILE), "pyproject.toml", "gateway", "sample_hooks"} <= set(sent)


def test_extras_of_the_image_are_pinned_with_hashes_beside_all_else() -> None:
    pin = re.compile(r"^([a-z0-9._-]+)==(\S+).*\\\n {4}--hash=sha256:", re.MULTILINE)
    pinned, base = (
        dict(pin.findall((ROOT / name).read_text("utf-8"))) for name in ("extras.lock", "requirements.lock")
    )
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    wanted = {re.split(r"[\[<>=]", one)[0] for name, needs in extras.items() if name != "all" for one in needs}
    assert wanted <= set(pinned)
    assert base.items() <= pinned.items()
    assert "-c extras.lock" in DOCKERFILE
