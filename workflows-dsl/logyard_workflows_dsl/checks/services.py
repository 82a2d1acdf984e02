"""Services: ports and endpoints, probes, scaling, files that follow addresses."""

from collections.abc import Iterator

from logyard_domain.definition import (
    Autoscaler,
    DynamicConfig,
    ExecCheck,
    Service,
    ServiceNetwork,
    Workflow,
)
from logyard_workflows_dsl.checks.findings import Finding, doubled, listed
from logyard_workflows_dsl.problems import Segment

Path = tuple[Segment, ...]


def findings(workflow: Workflow) -> Iterator[Finding]:
    """What is wrong in or between services."""
    for name, service in workflow.services.items():
        path: Path = ("services", name)
        if service.network is not None:
            yield from _network((*path, "network"), service.network)
        probe = service.readiness_probe
        if probe is not None and isinstance(probe.check, ExecCheck) and not probe.check.command:
            at: Path = (*path, "readiness-probe", "exec", "command")
            yield Finding(at, "it is empty; write for instance [test, -f, /tmp/ready]", misses=at)
        if service.autoscaler is not None:
            yield from _autoscaler((*path, "autoscaler"), name, service.autoscaler, workflow)
        if service.dynamic_config is not None:
            yield from _config((*path, "dynamic-config"), service.dynamic_config, workflow)
    yield from _targets(workflow)


def _network(path: Path, network: ServiceNetwork) -> Iterator[Finding]:
    ports = {port.name: port for port in network.ports}
    for index, name in doubled(port.name for port in network.ports):
        yield Finding((*path, "ports", index, "name"), f"`{name}` is the name of two ports")
    for index, port in doubled((port.port, port.protocol) for port in network.ports):
        yield Finding((*path, "ports", index, "port"), f"port {port[0]} ({port[1]}) is there twice")
    for index, name in doubled(endpoint.name for endpoint in network.endpoints):
        yield Finding((*path, "endpoints", index, "name"), f"`{name}` is the name of two endpoints")
    for index, endpoint in enumerate(network.endpoints):
        at = (*path, "endpoints", index, "port-name")
        target = ports.get(endpoint.port_name)
        if target is None:
            message = f"no port is called `{endpoint.port_name}`; {listed(ports)}"
            yield Finding(at, message, misses=(*path, "ports"))
        elif target.protocol == "udp":
            yield Finding(at, f"`{endpoint.port_name}` is a udp port; endpoints lead to tcp ports")


def _autoscaler(path: Path, name: str, scaler: Autoscaler, workflow: Workflow) -> Iterator[Finding]:
    triggers = scaler.scale_up.triggers if scaler.scale_up else ()
    at = (*path, "scale-up", "triggers")
    targeting = [bool(trigger.services) for trigger in triggers]
    if any(targeting) and not all(targeting):
        index = targeting.index(not targeting[0])
        yield Finding(
            (*at, index), "either all triggers of a service name `services`, or none does"
        )
    if any(targeting) and scaler.replicas is not None:
        yield Finding(
            (*path, "replicas"),
            "not where triggers scale other services; give those their replicas",
        )
    if scaler.replicas is not None and scaler.replicas.min > scaler.replicas.max:
        yield Finding(
            (*path, "replicas", "min"),
            f"{scaler.replicas.min} is more than max, {scaler.replicas.max}",
        )
    for index, trigger in enumerate(triggers):
        for place, target in enumerate(trigger.services):
            if target == name:
                message = "a trigger names other services; leave `services` out to scale this one"
                yield Finding((*at, index, "services", place), message)
            elif target not in workflow.services:
                message = f"no service is called `{target}`; {listed(workflow.services)}"
                yield Finding((*at, index, "services", place), message)


def _targets(workflow: Workflow) -> Iterator[Finding]:
    """A service is scaled by one trigger at most."""
    first: dict[str, str] = {}
    for name, path, target in _trigger_targets(workflow.services):
        if target in first:
            yield Finding(path, f"a trigger of `{first[target]}` scales `{target}` already")
        else:
            first[target] = name


def _trigger_targets(services: dict[str, Service]) -> Iterator[tuple[str, Path, str]]:
    for name, service in services.items():
        scale_up = service.autoscaler.scale_up if service.autoscaler else None
        for index, trigger in enumerate(scale_up.triggers if scale_up else ()):
            path: Path = ("services", name, "autoscaler", "scale-up", "triggers", index, "services")
            for place, target in enumerate(trigger.services):
                yield name, (*path, place), target


def _config(path: Path, config: DynamicConfig, workflow: Workflow) -> Iterator[Finding]:
    for index, name in enumerate(config.services):
        if name not in workflow.services:
            message = f"no service is called `{name}`; {listed(workflow.services)}"
            yield Finding((*path, "services", index), message)
