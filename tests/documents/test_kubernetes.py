"""The manifests for Kubernetes meet its published schema, and ask for no more rights than docker-compose.yml."""

import copy
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parents[2]
VERSIONS = ("1.25", "1.37")  # the oldest and the newest that are looked at
SIDES = ("curator", "party")


def manifests(side: str) -> list[dict[str, Any]]:
    """All that the folder's kustomization lists, which is all that lies there."""
    folder = ROOT / side / "deployment" / "kubernetes"
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert sorted(listed) == sorted({path.name for path in folder.iterdir()} - {"kustomization.yaml"})
    return [one for name in listed for one in yaml.safe_load_all((folder / name).read_text(encoding="utf-8"))]


def of_kind(side: str, kind: str) -> dict[str, Any]:
    (found,) = [one for one in manifests(side) if one["kind"] == kind]
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("side", SIDES)
def test_they_meet_the_published_schemas(side: str, version: str) -> None:
    for one in manifests(side):
        kubernetes_validate.validate(one, version, strict=True)


def test_the_schema_refuses_a_word_that_does_not_exist() -> None:
    broken = copy.deepcopy(of_kind("party", "Deployment"))
    broken["spec"]["template"]["spec"]["containers"][0]["securityContext"]["readOnlyRootFileSystem"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("side", SIDES)
def test_a_pod_has_no_rights_and_limits(side: str) -> None:
    pod = of_kind(side, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for context in (pod["securityContext"], container["securityContext"]):
        assert (context["runAsNonRoot"], context["runAsUser"]) == (True, 10001)
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "2Gi"}
    assert pod["automountServiceAccountToken"] is False
    assert {"readinessProbe", "livenessProbe"} <= set(container)


def test_a_party_reaches_its_curator_and_a_name_server_and_nobody_reaches_it() -> None:
    policy = of_kind("party", "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == []
    assert [[port["port"] for port in rule["ports"]] for rule in policy["egress"]] == [[8460], [53, 53]]
    assert policy["egress"][0]["to"] == [{"ipBlock": {"cidr": "192.0.2.10/32"}}]
    for side in SIDES:
        labels = of_kind(side, "Deployment")["spec"]["template"]["metadata"]["labels"]
        assert of_kind(side, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels


def test_one_pod_serves_a_home_and_its_storage_is_claimed() -> None:
    for side in SIDES:
        spec = of_kind(side, "Deployment")["spec"]
        assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
        volumes = spec["template"]["spec"]["volumes"]
        wanted = {one["persistentVolumeClaim"]["claimName"] for one in volumes if "persistentVolumeClaim" in one}
        assert wanted == {one["metadata"]["name"] for one in manifests(side) if one["kind"] == "PersistentVolumeClaim"}
