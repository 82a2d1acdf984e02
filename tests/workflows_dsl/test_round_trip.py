"""Any valid workflow prints to YAML, and to the bytes of the log, and reads back equal."""

import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar, Union

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from logyard_domain.definition import (
    Autoscaler,
    Defaults,
    Dependency,
    DynamicConfig,
    ExecCheck,
    Job,
    JobDefaults,
    JobNetwork,
    Mount,
    Policy,
    Program,
    Retry,
    Service,
    ServiceDefaults,
    ServiceNetwork,
    TaskArray,
    Transfer,
    Uri,
    Volume,
    Workflow,
    notation,
    ordered,
    resolved,
)
from logyard_domain.definition.reachability import ReadinessProbe
from logyard_workflows_dsl import dump, load

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
_NAME = re.compile(r"[^\x00-\x20\x7f/](.*[^\x00-\x20\x7f])?")
"""Names of files that a URI can have: blanks at an end are none."""
_P = TypeVar("_P", bound=Program)
replace = msgspec.structs.replace


def strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type of the definition, each by itself well written."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        for mark in arguments[1:]:
            if type(mark) in MARKED:
                return MARKED[type(mark)](mark)
        return strategy(arguments[0])
    if origin in {Union, types.UnionType}:
        return st.one_of(*(strategy(one) for one in arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(strategy(arguments[0]), max_size=3).map(tuple)
    if origin is dict and arguments[1] is Mount:
        return st.dictionaries(st.sampled_from(["/a", "/a/b", "/c d"]), strategy(Mount), max_size=2)
    if origin is dict:
        return st.dictionaries(strategy(arguments[0]), strategy(arguments[1]), max_size=3)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = typing.get_type_hints(hint, include_extras=True)
        names = [info.name for info in msgspec.structs.fields(hint)]
        return st.builds(hint, **{name: strategy(hints[name]) for name in names})
    return {str: TEXT, bool: st.booleans(), type(None): st.none()}[hint]


def _matching(mark: notation.Text) -> st.SearchStrategy[str]:
    text = st.from_regex(re.compile(mark.pattern, re.DOTALL), fullmatch=True)
    return text.filter(
        lambda one: (
            len(one) <= (mark.length_max or 100)
            and one.isascii() | ("\ud800" not in ascii(one) and _encodable(one))
        )
    )


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


MARKED: dict[type, Callable[[Any], st.SearchStrategy[Any]]] = {
    notation.Text: _matching,
    notation.Whole: lambda mark: st.integers(mark.least, mark.most),
    notation.Real: lambda mark: st.floats(mark.least, mark.most),
    notation.Size: lambda _: st.integers(1, 2**63 - 1),
    notation.Duration: lambda mark: st.integers(mark.least_ms, 10**11),
    notation.Content: lambda _: TEXT.filter(lambda text: not text.startswith("file://")),
    notation.Variables: lambda _: st.dictionaries(
        strategy(notation.VariableName),
        TEXT.filter(lambda text: not text.startswith("secret:")),
        max_size=3,
    ),
}


def _policy(policy: Policy | None) -> Policy | None:
    if policy is None or policy.retry is None:
        return policy
    longest = max(policy.retry.backoff_ms, policy.retry.backoff_max_ms)
    return replace(policy, retry=replace(policy.retry, backoff_max_ms=longest))


def _volume(volume: Volume, files: list[str]) -> Volume:
    """One address, and transfers between places that there are."""
    if volume.reference is not None:
        volume = replace(volume, use=None, name=None, type=None, path=None)
    elif volume.type is not None:
        path = volume.path or "/srv" if volume.type == "HOST" else None
        volume = replace(volume, use=None, name=None, path=path)
    elif volume.use == "persistent" and volume.name is None:
        volume = replace(volume, use=None, path=None)
    else:
        volume = replace(volume, use=None if volume.use == "ephemeral" else volume.use, path=None)
    local, results = Uri(uri="file://a/b c"), Uri(uri="results://x.png")
    source = (
        Uri(uri=f"file://{files[0]}")
        if files and _NAME.fullmatch(files[0])
        else Uri(uri="s3://b/k")
    )

    def transfers(
        found: tuple[Transfer, ...], source: Uri, destination: Uri
    ) -> tuple[Transfer, ...]:
        return tuple(
            replace(
                one,
                source=replace(one.source, uri=source.uri),
                destination=replace(one.destination, uri=destination.uri),
                policy=_policy(one.policy),
            )
            for one in found
        )

    return replace(
        volume,
        ingress=transfers(volume.ingress, source, local),
        egress=transfers(volume.egress, local, results),
    )


def _mounts(mounts: dict[str, Mount], volumes: list[str]) -> dict[str, Mount]:
    return {path: Mount(volume=volumes[0]) for path in mounts if volumes}


def _program(program: _P, volumes: list[str], earlier: list[tuple[str, bool]]) -> _P:
    """Something to run, mounts of what there is, dependencies on what came before."""
    command, script = program.command, program.script
    if command and (script is not None or not command[0]):
        command = ()
    if not command and script is None and program.image is None:
        command = ("true",)
    image = program.image and replace(program.image, uri="docker://x/y:1")
    waits = tuple(
        replace(dependency, name=name, status=dependency.status if is_service else "FINISHED")
        for dependency, (name, is_service) in zip(program.depends_on, earlier, strict=False)
    )
    requires = tuple(name for name, _ in earlier[: len(program.requires)])
    return replace(
        program,
        command=command,
        image=image,
        mounts=_mounts(program.mounts, volumes),
        depends_on=waits,
        requires=requires,
    )


def _job(job: Job) -> Job:
    array, network = job.task_array, job.network
    if array is not None:
        first, last = sorted((array.start, array.end))
        array = TaskArray(start=first, end=min(last, first + 999), concurrency=array.concurrency)
    if network is not None:
        network = JobNetwork(
            isolated=network.isolated,
            expose_tcp=tuple(sorted(set(network.expose_tcp))),
            expose_udp=tuple(sorted(set(network.expose_udp))),
        )
    multinode = job.multinode if array is None else None
    return replace(
        job, task_array=array, network=network, multinode=multinode, policy=_policy(job.policy)
    )


def _service(service: Service) -> Service:
    network, probe, scaler = service.network, service.readiness_probe, service.autoscaler
    if network is not None:
        ports = {port.name: port for port in network.ports}
        distinct = {port.port: port for port in ports.values()}
        tcp = [port.name for port in distinct.values() if port.protocol == "tcp"]
        endpoints = {one.name: replace(one, port_name=tcp[0]) for one in network.endpoints if tcp}
        network = ServiceNetwork(
            ports=tuple(distinct.values()), endpoints=tuple(endpoints.values()), host=network.host
        )
    if probe is not None and isinstance(probe.check, ExecCheck) and not probe.check.command:
        probe = replace(probe, check=ExecCheck(command=("true",)))
    if scaler is not None:
        scaler = _scaler(scaler)
    config = service.dynamic_config and replace(service.dynamic_config, services=())
    return replace(
        service, network=network, readiness_probe=probe, autoscaler=scaler, dynamic_config=config
    )


def _scaler(scaler: Autoscaler) -> Autoscaler:
    replicas, up = scaler.replicas, scaler.scale_up
    if replicas is not None:
        replicas = replace(replicas, min=min(replicas.min, replicas.max))
    if up is not None:
        up = replace(up, triggers=tuple(replace(one, services=()) for one in up.triggers))
    return replace(scaler, replicas=replicas, scale_up=up)


def consistent(workflow: Workflow) -> Workflow:
    """The workflow with what contradicts itself taken out."""
    files, volumes = list(workflow.files), list(workflow.volumes)
    earlier: list[tuple[str, bool]] = []
    jobs: dict[str, Job] = {}
    services: dict[str, Service] = {}
    for name, job in (workflow.jobs or {"only": Job()}).items():
        jobs[name] = _job(_program(job, volumes, earlier))
        earlier.append((name, False))
    for name, service in workflow.services.items():
        if name not in jobs:
            services[name] = _service(_program(service, volumes, earlier))
            earlier.append((name, True))
    return replace(
        workflow,
        jobs=jobs,
        services=services,
        volumes={key: _volume(volume, files) for key, volume in workflow.volumes.items()},
        defaults=workflow.defaults and _defaults(workflow.defaults, volumes),
    )


def _defaults(defaults: Defaults, volumes: list[str]) -> Defaults:
    job, service = defaults.job, defaults.service
    return replace(
        defaults,
        mounts=_mounts(defaults.mounts, volumes),
        job=job and replace(job, mounts=_mounts(job.mounts, volumes), policy=_policy(job.policy)),
        service=service and replace(service, mounts=_mounts(service.mounts, volumes)),
    )


PARTS = (Job, Service, Volume, Defaults, JobDefaults, ServiceDefaults, ReadinessProbe)
for part in (*PARTS, Autoscaler, DynamicConfig, Dependency, Retry):
    st.register_type_strategy(part, strategy(part))
WORKFLOWS = strategy(Workflow).map(consistent)


@settings(
    max_examples=50,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
@given(WORKFLOWS)
def test_any_workflow_prints_and_reads_back_equal(workflow: Workflow) -> None:
    text = dump(workflow)
    loaded = load(text)
    assert loaded.workflow == workflow
    assert not loaded.upgraded
    assert dump(loaded.workflow) == text
    assert msgspec.json.decode(msgspec.json.encode(workflow), type=Workflow) == workflow
    full = resolved(workflow)
    assert resolved(full) == full
    assert set(ordered(full)) == {*full.jobs, *full.services}
    assert load(dump(full)).workflow == full


@settings(max_examples=300, deadline=None)
@given(TEXT, TEXT)
def test_any_text_survives_as_script_file_and_argument(first: str, second: str) -> None:
    job = Job(script=first + second + "x", args=(first, second), env={"A": first, "B": second})
    workflow = Workflow(jobs={"a": job}, files={"f": first, "g": second})
    assert load(dump(workflow)).workflow == workflow
