"""The chart: what it renders is what Kubernetes takes, and what the guard needs. The helm is the real one."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from consumers.settings import GuardSettings, load_settings
from guardrail import __version__, telemetry
from guardrail.config import ShutdownSettings
from scripts.chart_schema import SCHEMA, written
from tests.support.deploy_tools import require_tools, run_tool
from tests.support.docs import parse
from tests.support.helm_chart import (
    CASES,
    CHART,
    EXPECTED,
    RELEASE,
    ROOT,
    VALUES,
    Objects,
    RenderError,
    objects_of,
    of_kind,
    pod_specs,
    render,
    workload_of,
)
from tests.support.promtool import check_alerts

CASE = pytest.mark.parametrize("case", CASES)
CHART_FILE: dict[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text())
KUBERNETES = "1.30"
WRITABLE = "/tmp"  # noqa: S108 - a folder of the pod, not of this machine


@pytest.fixture(scope="module")
def tools() -> Path:
    return require_tools()


@pytest.fixture(scope="module")
def rendered(tools: Path) -> dict[str, str]:
    return {name: render(tools, values) for name, values in CASES.items()}


def guard_of(objects: Objects) -> dict[str, Any]:
    """The guard's container."""
    [container] = workload_of(objects)["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = container
    return found


def environment(container: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


def validate(tools: Path, folder: Path, rendered: str) -> tuple[int, str]:
    """Status and words of kubectl-validate: the API server's own code, strict about unknown fields."""
    path = folder / "objects.yaml"
    path.write_text(rendered, encoding="utf-8")
    crds = str(tools / "crds")
    answer = run_tool(tools, "kubectl-validate", "--version", KUBERNETES, "--local-crds", crds, str(path))
    return answer.returncode, answer.stdout + answer.stderr


# ---------------------------------------------------------------------------- what helm and Kubernetes say


@CASE
def test_helm_finds_nothing_to_blame(tools: Path, case: str) -> None:
    answer = run_tool(tools, "helm", "lint", "--strict", str(CHART), "--values", str(CASES[case]))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert not re.search(r"\[(WARNING|ERROR)\]", answer.stdout)


@CASE
def test_it_renders_as_recorded(rendered: dict[str, str], case: str) -> None:
    """Recorded anew by ``python -m tests.support.helm_chart``, where that is meant."""
    assert rendered[case] == (EXPECTED / f"{case}.yaml").read_text(encoding="utf-8")


@CASE
def test_kubernetes_and_the_operators_know_every_field(
    tools: Path, tmp_path: Path, rendered: dict[str, str], case: str
) -> None:
    status, said = validate(tools, tmp_path, rendered[case])
    assert status == 0, said


@CASE
def test_a_namespace_that_enforces_restricted_admits_every_pod(
    tools: Path, rendered: dict[str, str], case: str
) -> None:
    answer = run_tool(tools, "pod-security", given=rendered[case])
    assert answer.returncode == 0, answer.stdout
    assert len(answer.stdout.splitlines()) == len(list(pod_specs(objects_of(rendered[case]))))


# ---------------------------------------------------------------------------------- what every pod has


@CASE
def test_no_pod_gets_a_token_or_variables_of_services(rendered: dict[str, str], case: str) -> None:
    """A Service called guardrail-ops would be GUARDRAIL_OPS_PORT, which is refused as a misspelt setting."""
    objects = objects_of(rendered[case])
    for spec in pod_specs(objects):
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
    for account in (one for one in objects if one["kind"] == "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


@CASE
def test_the_root_is_read_only_and_tmp_is_not(rendered: dict[str, str], case: str) -> None:
    for spec in pod_specs(objects_of(rendered[case])):
        volumes = {one["name"]: one for one in spec["volumes"]}
        for container in spec["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
            assert "emptyDir" in volumes[mounts[WRITABLE]["name"]]
            assert mounts.keys() >= {"/etc/guardrail", WRITABLE}


@CASE
def test_the_settings_are_mounted_as_a_folder(rendered: dict[str, str], case: str) -> None:
    """Kubernetes never renews a file that is mounted by subPath, and nothing could be reloaded."""
    for spec in pod_specs(objects_of(rendered[case])):
        for container in spec["containers"]:
            [mount] = [one for one in container["volumeMounts"] if one["name"] == "config"]
            assert mount["mountPath"] == "/etc/guardrail"
            assert "subPath" not in mount


@CASE
def test_command_lines_are_ones_that_guardrail_has(
    rendered: dict[str, str], case: str, tmp_path: Path
) -> None:
    settings = tmp_path / "guardrail.yaml"
    settings.write_text("{}\n")
    for spec in pod_specs(objects_of(rendered[case])):
        for container in spec["containers"]:
            arguments = [
                str(settings) if one == "/etc/guardrail/guardrail.yaml" else one for one in container["args"]
            ]
            path, parameters = parse(arguments)
            assert path in {
                "guardrail run",
                "guardrail topics create",
                "guardrail doctor",
                "guardrail flagged",
                "guardrail serve",
            }
            assert parameters["config"] == settings


@CASE
def test_the_settings_are_ones_that_the_guard_takes(
    rendered: dict[str, str], case: str, tmp_path: Path
) -> None:
    objects = objects_of(rendered[case])
    maps = [one for one in objects if one["kind"] == "ConfigMap" and "guardrail.yaml" in one["data"]]
    assert bool(maps) == (case != "everything"), "that one brings its own ConfigMap"
    for one in maps:
        path = tmp_path / "guardrail.yaml"
        path.write_text(one["data"]["guardrail.yaml"], encoding="utf-8")
        load_settings(path)
        given = yaml.safe_load(one["data"]["guardrail.yaml"])
        wanted = {
            **VALUES["config"]["settings"],
            **(yaml.safe_load(CASES[case].read_text()) or {}).get("config", {}).get("settings", {}),
        }
        assert given == {name: value for name, value in wanted.items() if value is not None}


# ------------------------------------------------------------------------------------- the guard's pods


def test_a_pod_of_a_stateful_set_may_keep_its_membership_under_its_name(rendered: dict[str, str]) -> None:
    """Of other pods the names never come back, or seldom within the session time-out."""
    static = [case for case in CASES if "GUARDRAIL_KAFKA__GROUP_INSTANCE_ID" in rendered[case]]
    assert static == ["everything"]
    objects = objects_of(rendered["everything"])
    workload = workload_of(objects)
    assert workload["kind"] == "StatefulSet"
    assert environment(guard_of(objects))["GUARDRAIL_KAFKA__GROUP_INSTANCE_ID"] == {
        "fieldRef": {"fieldPath": "metadata.name"}
    }
    service = of_kind(objects, "Service")
    assert workload["spec"]["serviceName"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == workload["spec"]["selector"]["matchLabels"]


def test_the_settings_are_asked_at_the_port_that_is_served(rendered: dict[str, str]) -> None:
    container = guard_of(objects_of(rendered["everything"]))
    assert environment(container)["GUARDRAIL_OPS__PORT"] == "9095"
    assert environment(container)["GUARDRAIL_OPS__HOST"] == "::"
    [port] = container["ports"]
    assert port == {"name": "ops", "containerPort": 9095}
    probes = {
        name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe", "startupProbe")
    }
    assert {probe["path"] for probe in probes.values()} == {"/livez", "/readyz", "/startupz"}
    assert {probe["port"] for probe in probes.values()} == {"ops"}


@CASE
def test_the_variables_of_the_pods_are_settings(
    rendered: dict[str, str], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = guard_of(objects_of(rendered[case]))
    given = environment(container)
    for name, value in given.items():
        monkeypatch.setenv(name, value if isinstance(value, str) else "guard-0")
    settings = load_settings()
    assert settings.ops.host == given["GUARDRAIL_OPS__HOST"]
    assert settings.ops.port == container["ports"][0]["containerPort"]
    static = "GUARDRAIL_KAFKA__GROUP_INSTANCE_ID" in given
    assert settings.kafka.group_instance_id == ("guard-0" if static else None)


@CASE
def test_an_autoscaler_alone_sets_the_number_of_guards(rendered: dict[str, str], case: str) -> None:
    objects = objects_of(rendered[case])
    scalers = [
        one
        for one in objects
        if one["kind"] in {"HorizontalPodAutoscaler", "ScaledObject"}
        and one["metadata"]["labels"]["app.kubernetes.io/component"] == "guard"
    ]
    workload = workload_of(objects)
    assert ("replicas" in workload["spec"]) == (not scalers)
    for scaler in scalers:
        target = scaler["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) == (workload["kind"], workload["metadata"]["name"])
        assert (scaler["spec"].get("minReplicas") or scaler["spec"].get("minReplicaCount")) >= 1


def test_a_change_of_the_settings_restarts_the_guards_unless_they_reload(tools: Path) -> None:
    def checksum(mode: str, *, in_place: bool) -> str | None:
        settings = {"policies": {"default": {"mode": mode}}}
        objects = objects_of(
            render(tools, changes={"config": {"settings": settings, "reloadInPlace": in_place}})
        )
        annotations = workload_of(objects)["spec"]["template"]["metadata"].get("annotations", {})
        found: str | None = annotations.get("checksum/config")
        return found

    assert checksum("hold", in_place=False) != checksum("observe", in_place=False) is not None
    assert checksum("hold", in_place=True) is None


def test_a_new_version_of_the_chart_alone_restarts_nothing(rendered: dict[str, str]) -> None:
    for case in CASES:
        assert (
            "helm.sh/chart"
            not in workload_of(objects_of(rendered[case]))["spec"]["template"]["metadata"]["labels"]
        )


def test_only_guards_are_counted_and_disrupted_as_guards(rendered: dict[str, str]) -> None:
    """The pods of the hook and of the test are none."""
    for case in CASES:
        objects = objects_of(rendered[case])
        selector = workload_of(objects)["spec"]["selector"]["matchLabels"]
        assert of_kind(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == selector
        labels = [one["spec"]["template"]["metadata"]["labels"] for one in objects if one["kind"] == "Job"]
        labels += [one["metadata"]["labels"] for one in objects if one["kind"] == "Pod"]
        assert labels
        assert not any(selector.items() <= pod.items() for pod in labels)


def test_the_hook_needs_nothing_that_comes_after_it(rendered: dict[str, str]) -> None:
    """Before an installation there is neither the release's ConfigMap nor its ServiceAccount."""
    objects = objects_of(rendered["deployment-hpa"])
    job = of_kind(objects, "Job")
    spec = job["spec"]["template"]["spec"]
    assert "serviceAccountName" not in spec
    [name] = [one["configMap"]["name"] for one in spec["volumes"] if one["name"] == "config"]
    [settings] = [one for one in objects if one["kind"] == "ConfigMap" and one["metadata"]["name"] == name]
    hooks = [one["metadata"]["annotations"] for one in (settings, job)]
    assert {hook["helm.sh/hook"] for hook in hooks} == {"pre-install,pre-upgrade"}
    assert int(hooks[0]["helm.sh/hook-weight"]) < int(hooks[1]["helm.sh/hook-weight"])


def test_the_test_runs_doctor_as_the_guard_sees_the_world(rendered: dict[str, str]) -> None:
    for case in CASES:
        objects = objects_of(rendered[case])
        pod = of_kind(objects, "Pod")
        guard = guard_of(objects)
        [doctor] = pod["spec"]["containers"]
        assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
        assert doctor["args"][:3] == ["doctor", "--config", "/etc/guardrail/guardrail.yaml"]
        assert doctor["image"] == guard["image"]
        of_guard = workload_of(objects)["spec"]["template"]["spec"]["volumes"]
        if case == "gateway":  # that one's test reads the gateway's keys and certificate, too
            of_gateway = named_of(objects)["Deployment", f"{RELEASE}-guardrail-gateway"]["spec"]["template"][
                "spec"
            ]
            assert doctor["volumeMounts"] == of_gateway["containers"][0]["volumeMounts"]
            assert pod["spec"]["volumes"] == of_gateway["volumes"]
            continue
        assert doctor["volumeMounts"] == guard["volumeMounts"]
        if case != "everything":
            assert doctor.get("envFrom") == guard.get("envFrom")
            assert pod["spec"]["volumes"] == of_guard
            continue
        # That one's test has a user of its own, whose Secret is in the place of the guards'.
        text = json.dumps([guard["envFrom"], of_guard])
        assert text.count('"chat-guard"') == 2
        own = text.replace('"chat-guard"', '"chat-guard-test"')
        assert json.loads(own) == [doctor["envFrom"], pod["spec"]["volumes"]]


# --------------------------------------------------------------------------------------------- scaling


def test_the_age_that_keda_asks_for_is_one_that_guards_tell(rendered: dict[str, str]) -> None:
    [trigger] = of_kind(objects_of(rendered["keda-prometheus"]), "ScaledObject")["spec"]["triggers"]
    [name] = re.findall(r"guardrail_\w+", trigger["metadata"]["query"])
    state = telemetry.GuardState(0, 0, 0, 0, 0, saturated=False, oldest_held_s=1.5, partitions=())
    telemetry.serve_state(lambda: state)
    try:
        assert telemetry.REGISTRY.get_sample_value(name) == 1.5
    finally:
        telemetry.serve_state(None)


# ------------------------------------------------------------------------------------------ network


def test_nobody_but_prometheus_is_let_in(tools: Path, rendered: dict[str, str]) -> None:
    """A rule without 'from' would let everybody in."""
    [scrapes] = of_kind(objects_of(rendered["deployment-hpa"]), "NetworkPolicy")["spec"]["ingress"]
    assert [one["podSelector"]["matchLabels"] for one in scrapes["from"]] == [
        {"app.kubernetes.io/name": "prometheus"}
    ]
    nobody = render(tools, changes={"networkPolicy": {"enabled": True, "scrapeFrom": []}})
    assert of_kind(objects_of(nobody), "NetworkPolicy")["spec"]["ingress"] is None


def not_let_out(tools: Path, changes: dict[str, Any]) -> list[str]:
    """What the notes say is reached and not let out. helm shows notes only where there is a cluster."""
    manifest = """apiVersion: v1
kind: ConfigMap
metadata: {name: told}
data:
  text: |{{ include "guardrail.notLetOut" . | indent 2 }}
"""
    objects = objects_of(render(tools, changes={**changes, "extraManifests": [manifest]}))
    [told] = [one for one in objects if one["metadata"]["name"] == "told"]
    return [line.strip() for line in told["data"]["text"].splitlines() if line.strip()]


def test_the_notes_name_what_the_policy_does_not_let_out(tools: Path) -> None:
    settings = {
        "judge": {
            "kind": "cascade",
            "llm": {"model": "one", "fallbacks": [{"model": "two", "base_url": "http://models:8000/v1"}]},
            "cache": {"redis_url": "rediss://cache"},
        },
        "flagged": {"store": {"env": "STORE"}, "webhook_url": "https://review.example.com:8443/cases"},
        "ops": {"traces": True},
    }
    collector = {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4318"}
    given = {
        "config": {"settings": settings},
        "flagged": {"enabled": True},
        "extraEnv": [collector],
    }
    assert not_let_out(tools, given) == [
        "OTEL_EXPORTER_OTLP_ENDPOINT: collector, port 4318",
        "flagged.store: an address that the chart can't see",
        "flagged.webhook_url: review.example.com, port 8443",
        "judge.cache.redis_url: cache, port 6379",
        "judge.llm.base_url: api.openai.com, port 443",
        "judge.llm.fallbacks.0.base_url: models, port 8000",
    ]
    rules = [{"ports": [{"port": 443}, {"port": 8000, "endPort": 8443}, {"port": 6379}]}]
    assert not_let_out(tools, {**given, "networkPolicy": {"extraEgress": rules}}) == [
        "OTEL_EXPORTER_OTLP_ENDPOINT: collector, port 4318",
        "flagged.store: an address that the chart can't see",
    ]
    assert not_let_out(tools, {**given, "networkPolicy": {"extraEgress": [{"to": []}]}}) == []
    assert not_let_out(tools, {}) == []


# ------------------------------------------------------------------------------ values that are refused


def setting(path: str, value: Any) -> dict[str, Any]:
    """Values with one of the guard's settings."""
    for name in reversed(path.split(".")):
        value = {name: value}
    return {"config": {"settings": value}}


def alert(name: str, **changes: Any) -> dict[str, Any]:
    """Values with changes of one alert."""
    return {"prometheusRule": {"enabled": True, "alerts": {name: changes}}}


KEDA_KAFKA = {"kind": "keda", "keda": {"trigger": "kafka"}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"terminationGracePeriodSeconds": 29}, "give at least 30"),
        ({"config": {"settings": {"shutdown": {"budget_ms": 60_001}}}}, "give at least 66"),
        ({"autoscaling": {"kind": "keda", "minReplicas": 0}}, "/autoscaling/minReplicas"),
        ({"autoscaling": {"kind": "hpa", "minReplicas": 7}}, "autoscaling.minReplicas is 7"),
        ({"autoscaling": {"kind": "hpa", "maxReplicas": 13}}, "has 12 partitions"),
        (
            {"autoscaling": {**KEDA_KAFKA, "keda": {"trigger": "kafka", "kafka": {"lagThreshold": 12}}}},
            "give more than 12",
        ),
        ({"existingSecretMountPath": "/etc/secrets"}, "needs existingSecret"),
        ({"existingSecret": "s", "existingSecretMountPath": "/etc/guardrail/s"}, "is in /etc/guardrail"),
        ({"existingSecret": "s", "existingSecretMountPath": "/etc/guardrail"}, "is in /etc/guardrail"),
        ({"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}, "scrape every guard twice"),
        ({"config": {"settings": {"kafka": {"sasl_password": "x"}}}}, "/config/settings/kafka/sasl_password"),
        (setting("kafka.sasl_oauth_client_secret", "x"), "/config/settings/kafka/sasl_oauth_client_secret"),
        (setting("judge.llm.api_key", "sk-x"), "/config/settings/judge/llm/api_key"),
        (
            setting("judge.llm.extra_headers", {"Authorization": "x"}),
            "/judge/llm/extra_headers/Authorization",
        ),
        (setting("judge.cache.signing_key", "x"), "/config/settings/judge/cache/signing_key"),
        (setting("judge.cache.redis_url", "redis://:pw@r:6379"), "judge.cache.redis_url holds a password"),
        (setting("flagged.webhook_secret", "whsec_x"), "/config/settings/flagged/webhook_secret"),
        (setting("flagged.webhook_url", "https://u:pw@h/"), "flagged.webhook_url holds a password"),
        (setting("flagged.store", "postgresql://u:pw@h/d"), "flagged.store holds a password"),
        (setting("flagged.store", "postgresql://h/d?password=pw"), "flagged.store holds a password"),
        (setting("kafka.oops", 1), "oops not allowed"),
        (setting("oops", 1), "oops not allowed"),
        (setting("policies.default.mode", "nonsense"), "/config/settings/policies/default/mode"),
        (setting("shutdown.budget_ms", "abc"), "/config/settings/shutdown/budget_ms"),
        (setting("kafka.client.session_timeout_ms", 1), "/kafka/client/session_timeout_ms"),
        ({"topics": {"create": True}, "replicaCount": 13}, "replicaCount is 13"),
        ({"autoscaling": {"partitions": 4}, "replicaCount": 5}, "has 4 partitions"),
        ({"config": {"settings": {"kafka": {"group_instance_id": "x"}}}}, "group_instance_id"),
        ({"config": {"settings": {"ops": {"port": 1}}}}, "/config/settings/ops"),
        ({"image": {"digest": "sha256:abc"}}, "/image/digest"),
        ({"replicas": 3}, "replicas"),
        ({"networkPolicy": {"kafka": {"ports": ["kafka"]}}}, "/networkPolicy/kafka/ports"),
        (
            {
                "networkPolicy": {"enabled": True, "kafka": {"ports": [9092]}},
                **setting("kafka.bootstrap_servers", "a:9092,b:9093"),
            },
            "networkPolicy.kafka.ports lacks 9093",
        ),
        *(
            (
                {"networkPolicy": {"enabled": True}, **setting("kafka.bootstrap_servers", servers)},
                f'kafka.bootstrap_servers ({servers}): "{named}" has no port',
            )
            for servers, named in [
                ("kafka", "kafka"),
                ("k1:9092, k2", "k2"),
                ("10.0.0.1", "10.0.0.1"),
                ("[fd00::1]", "[fd00::1]"),
                ("fd00::1", "fd00::1"),
                ("k1:9092,", ""),
            ]
        ),
        (
            {"networkPolicy": {"enabled": True}, "config": {"existingConfigMap": "own"}},
            "can't see in config.existingConfigMap",
        ),
        ({"autoscaling": {"kind": "hpa"}, "resources": {"requests": {"cpu": None}}}, "give that"),
        ({"resources": {"limits": {"memory": "lots"}}}, "/resources/limits/memory"),
        (alert("GuardrailTextWait", severity="page"), "GuardrailTextWait"),
        (alert("GuardrailKafkaAway", threshold=2), "GuardrailKafkaAway.threshold: this alert has none"),
    ],
)
def test_values_that_would_go_wrong_later_are_refused_at_once(
    tools: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(RenderError) as refused:
        render(tools, changes=changes)
    assert said in str(refused.value).replace("'", "").replace(".", "/") or said in str(refused.value)


def test_the_schema_of_the_settings_is_theirs() -> None:
    """Written anew by ``make helm-docs``."""
    assert SCHEMA.read_text(encoding="utf-8") == written()


ADDRESSES = {
    "judge": {"cache": {"redis_url": "redis://cache:6379", "signing_key": {"env": "KEY"}}},
    "flagged": {"store": "postgresql://guard@db/cases", "webhook_url": "https://review.example.com/cases"},
}


@pytest.mark.parametrize(
    "settings",
    [
        yaml.safe_load((ROOT / "guardrail.example.yaml").read_text(encoding="utf-8")),
        GuardSettings().masked(),
        {"policies": {"default": None, "shop": {"extends": "default"}}},
        {"policies": {"default": {"rules": ["support < 0.3: block", "always: flag"]}}},
        {"judge": {"llm": {"extra_headers": {"X-Team": "rag"}, "api_key": {"file": "/run/key"}}}},
        ADDRESSES,
        {"ops": {"traces": True}},
    ],
    ids=["example", "defaults", "extended policies", "rules", "headers", "addresses", "traces"],
)
def test_settings_that_the_guard_takes_are_not_refused(tools: Path, settings: dict[str, Any]) -> None:
    of_chart = {"host", "port"}
    ours = {
        section: {name: value for name, value in settings.get(section, {}).items() if name not in of_chart}
        for section in ("ops", "serve")
    }
    render(tools, changes={"config": {"settings": {**settings, **ours}}})


def test_more_guards_than_partitions_that_the_chart_does_not_know_are_taken(tools: Path) -> None:
    assert workload_of(objects_of(render(tools, changes={"replicaCount": 50})))["spec"]["replicas"] == 50


def test_the_shortest_grace_period_is_above_the_budget_of_the_guard(tools: Path) -> None:
    budget_s = ShutdownSettings().budget_ms / 1000
    assert VALUES["terminationGracePeriodSeconds"] > budget_s
    objects = objects_of(render(tools, changes={"terminationGracePeriodSeconds": int(budget_s) + 5}))
    assert workload_of(objects)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > budget_s


# ------------------------------------------------------------------------------- files, pages, releases


RULES: list[dict[str, Any]] = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"][0][
    "rules"
]


def alerts_of(objects: Objects) -> dict[str, dict[str, Any]]:
    [group] = of_kind(objects, "PrometheusRule")["spec"]["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_alerts_are_those_of_the_file_for_this_release_alone(rendered: dict[str, str]) -> None:
    """Helm's templates and Prometheus' use the same braces; the file is a template of Prometheus alone."""
    objects = objects_of(rendered["keda-prometheus"])
    # As the Prometheus operator labels what a ServiceMonitor finds: by the Service's name.
    scope = f'namespace="chat", job="{of_kind(objects, "Service")["metadata"]["name"]}"'
    guards = of_kind(objects, "ScaledObject")["spec"]["minReplicaCount"]
    wanted = {
        rule["alert"]: {**rule, "expr": rule["expr"].replace('job=~".+"', scope)}
        for rule in RULES
        if not rule["alert"].startswith("GuardrailGateway")
    }
    few = wanted["GuardrailTooFew"]
    few["expr"] = few["expr"].replace("< 1", f"< {guards}")
    assert alerts_of(objects) == wanted


def test_the_schema_knows_the_alerts() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    known = schema["properties"]["prometheusRule"]["properties"]["alerts"]["propertyNames"]["enum"]
    assert known == [rule["alert"] for rule in RULES]


def test_a_release_that_vanishes_beside_another_one_is_noticed(tools: Path, tmp_path: Path) -> None:
    rules = []
    for name in ("east", "west"):
        given = {"fullnameOverride": name, "prometheusRule": {"enabled": True}}
        rule = of_kind(objects_of(render(tools, changes=given)), "PrometheusRule")
        rules.append(tmp_path / f"{name}.yaml")
        rules[-1].write_text(yaml.safe_dump(rule["spec"]), encoding="utf-8")
    up = 'guardrail_build_info{{namespace="chat", job="{}", instance="{}"}}'
    ready = 'guardrail_oldest_unreleased_seconds{{namespace="chat", job="{}", instance="{}"}}'
    series = [
        {"series": one.format(job, instance), "values": "0x60" if job == "east" else values}
        for one in (up, ready)
        for job, instance, values in (
            ("east", "a", ""),
            ("east", "b", ""),
            ("west", "c", "0x20"),
            ("west", "d", "0x8"),
        )
    ]
    labels = '{{alertname="{}", namespace="chat", job="west"}}'

    def firing(at: str, name: str) -> dict[str, Any]:
        return {
            "expr": 'count(ALERTS{alertstate="firing"}) by (alertname, namespace, job)',
            "eval_time": at,
            "exp_samples": [{"labels": labels.format(name), "value": 1}],
        }

    case = {
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [firing("19m", "GuardrailTooFew"), firing("40m", "GuardrailAbsent")],
    }
    check_alerts(tmp_path, yaml.safe_dump({"rule_files": list(map(str, rules)), "tests": [case]}))


def test_the_dashboard_goes_in_as_it_is(rendered: dict[str, str]) -> None:
    objects = objects_of(rendered["keda-prometheus"])
    dashboard = json.loads((CHART / "files" / "dashboard.json").read_text())
    [data] = [
        one["data"] for one in objects if one["kind"] == "ConfigMap" and "guardrail.json" in one["data"]
    ]
    assert json.loads(data["guardrail.json"]) == dashboard


def test_the_readme_is_what_the_comments_say(tools: Path) -> None:
    """Written anew by ``make helm-docs``."""
    answer = run_tool(tools, "helm-docs", "--chart-search-root", str(CHART), "--dry-run")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() == (CHART / "README.md").read_text(encoding="utf-8").strip()


def test_every_value_has_a_comment() -> None:
    rows = re.findall(r"^\| (\S+) \| \w+ \|.*\|(.*)\|$", (CHART / "README.md").read_text(), re.MULTILINE)
    assert {name.split(".")[0] for name, _ in rows} >= set(VALUES)
    assert [name for name, text in rows if not text.strip()] == []


def test_the_chart_packs_with_what_it_needs(tools: Path, tmp_path: Path) -> None:
    answer = run_tool(tools, "helm", "package", str(CHART), "--destination", str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    [package] = tmp_path.glob("guardrail-*.tgz")
    shown = run_tool(
        tools,
        "helm",
        "template",
        "g",
        str(package),
        "--kube-version",
        "1.30.0",
        "--set",
        "dashboards.enabled=true",
    )
    assert "guardrail_oldest_unreleased_seconds" in shown.stdout


def test_the_chart_belongs_to_this_version() -> None:
    assert CHART_FILE["appVersion"] == __version__
    [image] = yaml.safe_load(CHART_FILE["annotations"]["artifacthub.io/images"])
    assert image["image"] == f"{VALUES['image']['repository']}:{__version__}"
    for change in yaml.safe_load(CHART_FILE["annotations"]["artifacthub.io/changes"]):
        assert change["kind"] in {"added", "changed", "deprecated", "removed", "fixed", "security"}
    assert set(CHART_FILE["annotations"]) == {
        f"artifacthub.io/{name}"
        for name in ("category", "changes", "containsSecurityUpdates", "images", "license", "prerelease")
    }


def test_the_schema_knows_every_value(tools: Path) -> None:
    """A value that the schema lacks would be refused, and one that it has alone would do nothing."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    known = schema["properties"]
    assert set(known) == {*VALUES, "global"}
    for name, value in VALUES.items():
        part = known[name]
        if "$ref" in part:
            part = schema["definitions"][part["$ref"].rsplit("/", 1)[1]]
        if isinstance(value, dict) and part.get("additionalProperties") is False:
            assert set(part["properties"]) == set(value), name
    wrong = copy.deepcopy(VALUES)
    wrong["image"]["repositry"] = "x"
    with pytest.raises(RenderError, match="repositry"):
        render(tools, changes=wrong)


def named_of(objects: Objects) -> dict[tuple[str, str], dict[str, Any]]:
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}


def test_the_gateway_is_reached_scaled_and_scraped_by_itself(
    rendered: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    objects = objects_of(rendered["gateway"])
    named, name = named_of(objects), f"{RELEASE}-guardrail-gateway"
    deployment = named["Deployment", name]["spec"]
    pods, [container] = (
        deployment["template"]["metadata"]["labels"],
        deployment["template"]["spec"]["containers"],
    )
    for kind, selector in (
        ("Service", named["Service", name]["spec"]["selector"]),
        ("PodDisruptionBudget", named["PodDisruptionBudget", name]["spec"]["selector"]["matchLabels"]),
        ("NetworkPolicy", named["NetworkPolicy", name]["spec"]["podSelector"]["matchLabels"]),
        ("ServiceMonitor", named["ServiceMonitor", name]["spec"]["selector"]["matchLabels"]),
    ):
        assert selector.items() <= pods.items(), kind
        assert not selector.items() <= workload_of(objects)["spec"]["selector"]["matchLabels"].items(), kind
    assert "replicas" not in deployment
    assert named["HorizontalPodAutoscaler", name]["spec"]["scaleTargetRef"]["name"] == name
    assert {each["name"]: each["containerPort"] for each in container["ports"]} == {"http": 8800, "ops": 8080}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "ops"}
    for variable, value in environment(container).items():
        monkeypatch.setenv(variable, value)
    path = tmp_path / "guardrail.yaml"
    path.write_text(named["ConfigMap", f"{RELEASE}-guardrail"]["data"]["guardrail.yaml"])
    serve = load_settings(path).serve
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    assert serve.keys is not None
    assert (serve.host, serve.port) == ("0.0.0.0", 8800)  # noqa: S104
    assert {
        str(each.parent) for each in (serve.keys.file, serve.certificate, serve.private_key) if each
    } <= mounts
    [asked] = named["NetworkPolicy", name]["spec"]["ingress"]
    assert (asked["ports"], "from" in asked) == ([{"port": "http", "protocol": "TCP"}], True)
    grace_s = deployment["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace_s * 1000 > ShutdownSettings().budget_ms + VALUES["gateway"]["preStopSeconds"] * 1000
    assert not any("gateway" in name for _, name in named_of(objects_of(rendered["default"])))


def test_a_gateway_needs_keys(tools: Path) -> None:
    with pytest.raises(RenderError, match=r"gateway\.keysSecret: other machines may ask"):
        render(tools, changes={"gateway": {"enabled": True}})


def test_the_alerts_of_the_gateway_ask_its_own_series(rendered: dict[str, str]) -> None:
    [group] = of_kind(objects_of(rendered["gateway"]), "PrometheusRule")["spec"]["groups"]
    asked = {rule["alert"]: rule["expr"] for rule in group["rules"]}
    assert f'job="{RELEASE}-guardrail-gateway"' in asked["GuardrailGatewayFails"]
    assert f'job=~"{RELEASE}-guardrail(-gateway)?"' in asked["GuardrailReloadFailed"]
    assert f'job="{RELEASE}-guardrail"' in asked["GuardrailTooFew"]


def test_the_subscriber_is_scraped_and_counts_as_no_guard(rendered: dict[str, str]) -> None:
    objects = objects_of(rendered["everything"])
    named = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    pods = named["Deployment", "chat-guard-flagged"]["spec"]["template"]["metadata"]["labels"]
    assert named["Service", "chat-guard-flagged"]["spec"]["selector"].items() <= pods.items()
    guards = of_kind(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
    assert not guards.items() <= pods.items()
    scraped = of_kind(objects, "PodMonitor")["spec"]["selector"]
    assert scraped["matchLabels"].items() <= pods.items()
    [expression] = scraped["matchExpressions"]
    assert pods[expression["key"]] in expression["values"]
    assert not any(
        "flagged" in name
        for _, name in {(o["kind"], o["metadata"]["name"]) for o in objects_of(rendered["default"])}
    )
