"""What follows from a definition: order, cycles, and what is not run yet."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logyard_domain.capabilities import refusals
from logyard_domain.definition import (
    Dependency,
    Job,
    Service,
    Workflow,
    cycles,
    dependencies,
    ordered,
)
from logyard_workflows_dsl import load


def _jobs(**waits: str) -> Workflow:
    return Workflow(
        jobs={
            name: Job(
                command=("x",),
                depends_on=tuple(Dependency(name=other) for other in others),
            )
            for name, others in waits.items()
        }
    )


def test_order_keeps_the_file_where_it_can() -> None:
    assert ordered(_jobs(d="b", a="", c="ab", b="a")) == ("a", "b", "d", "c")
    assert ordered(Workflow()) == ()


def test_dependencies_of_jobs_and_services() -> None:
    workflow = Workflow(
        jobs={
            "a": Job(requires=("s",)),
            "b": Job(depends_on=(Dependency(name="s"),), requires=("a",)),
        },
        services={"s": Service()},
    )
    assert dependencies(workflow) == {
        "a": (Dependency(name="s"),),
        "b": (Dependency(name="s"),),
        "s": (),
    }
    assert ordered(workflow) == ("s", "a", "b")


def test_cycles_are_named() -> None:
    with pytest.raises(ValueError, match="these wait for each other: a -> b -> a"):
        ordered(_jobs(a="b", b="a"))
    assert cycles({"a": ["b"], "b": ["c"], "c": ["a", "b"], "d": ["d"], "e": ["gone"]}) == (
        ("a", "b", "c", "a"),
        ("d", "d"),
    )


def test_long_chains_do_not_exhaust_the_stack() -> None:
    names = [f"j{number}" for number in range(10_000)]
    waits = {name: [later] for name, later in itertools.pairwise(names)} | {names[-1]: []}
    assert cycles(waits) == ()
    (cycle,) = cycles(waits | {names[-1]: [names[0]]})
    assert len(cycle) == 10_001
    chain = {name: Job(command=("x",), requires=tuple(waits[name])) for name in names}
    assert ordered(Workflow(jobs=chain)) == tuple(reversed(names))


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_a_cycle_is_found_exactly_where_no_order_exists(edges: list[tuple[int, int]]) -> None:
    waits: dict[str, list[str]] = {str(number): [] for number in range(8)}
    for waiting, other in edges:
        waits[str(waiting)].append(str(other))
    left = dict(waits)
    while ready := [name for name, others in left.items() if not set(others) & set(left)]:
        for name in ready:
            del left[name]
    found = cycles(waits)
    assert bool(found) == bool(left)
    for cycle in found:
        assert cycle[0] == cycle[-1]
        assert all(after in waits[name] for name, after in itertools.pairwise(cycle))


def test_what_runs_is_not_refused() -> None:
    text = """
version: v4
annotations: {team: vision}
files: {scene.json: "{}"}
defaults: {job: {mounts: {/data: data}, policy: {retry: {attempts: 2}}}}
volumes:
  data:
    ingress: [{source: {uri: file://scene.json}, destination: {uri: file://in/scene.json}}]
    egress: [{source: {uri: file://out.png}, destination: {uri: results://out.png}}]
  old: {reference: volume://user/ephemeral, size: 1GB}
  used: {use: ephemeral}
jobs:
  render:
    script: render
    env: [A=b]
    task-array: {start: 1, end: 9}
    resource: {cpu: {cores: 2, affinity: NUMA}, memory: {size: 1GB}, devices: {nvidia.com/gpu: 1},
               exclusive: true, annotations: {gpu: L4}}
  join: {command: [join], depends-on: [{name: render}], preemptible: true}
"""
    assert refusals(load(text).workflow) == ()


def test_each_feature_that_is_not_run_yet_is_named() -> None:
    everything = (Path(__file__).parent / "files" / "everything.yaml").read_text(encoding="utf-8")
    assert refusals(load(everything).workflow) == (
        "volumes.shared: persistent volumes are not run yet; use an ephemeral volume, {}, and keep "
        "results with egress to results://",
        "volumes.picked.annotations: provisioners are not chosen by annotation yet; "
        "leave `annotations` out",
        "volumes.picked.ingress[0].source.uri: data from hf:// is not fetched yet; "
        "put it under `files` and use file://<name>, or fetch it in a job",
        "volumes.picked.ingress[0].source.secret: secrets are not resolved yet; leave `secret` out",
        "volumes.picked.egress[1].destination.uri: data is not sent to fb:// yet; "
        "use results://<path>, a folder that the server keeps",
        "volumes.picked.egress[1].destination.secrets: secrets are not resolved yet; "
        "leave `secrets` out",
        "jobs.sweep.env: secrets are not resolved yet; give TOKEN a plain value",
        "jobs.sweep.resource.cpu.sockets: sockets are not placed yet; leave `sockets` out",
        "jobs.sweep.network: networks of their own are not given to jobs yet; "
        "leave `network` out to run on the network of the node",
        "jobs.ring.image: container images are not run yet; "
        "leave `image` out to run the command directly on a node",
        "jobs.ring.image.decryptionSecret: secrets are not resolved yet; "
        "leave `decryptionSecret` out",
        "jobs.ring.resource.cpu.sockets: sockets are not placed yet; leave `sockets` out",
        "jobs.ring.multinode: jobs on several nodes are not run by the nodes of this cluster yet; "
        "leave `multinode` out to run on one node",
        "jobs.sweep-slots.image: container images are not run yet; "
        "leave `image` out to run the command directly on a node",
        "jobs.sweep-slots.resource.cpu.sockets: sockets are not placed yet; leave `sockets` out",
        "services.board: services are not run yet; leave it out, or make it a job",
        "services.helper: services are not run yet; leave it out, or make it a job",
    )


@pytest.mark.parametrize(
    ("volume", "sentence"),
    [
        ("{use: fast}", "volumes.v.use: storage provisioners are not run yet; leave `use` out"),
        ("{type: HOST, path: /srv}", "volumes.v.type: folders of the host are not mounted yet; "
         "use an ephemeral volume, {}"),
        ("{reference: volume://user/persistent}", "volumes.v: persistent volumes are not run yet; "
         "use an ephemeral volume, {}, and keep results with egress to results://"),
        ("{name: w}", "volumes.v: persistent volumes are not run yet; "
         "use an ephemeral volume, {}, and keep results with egress to results://"),
    ],
)  # fmt: skip
def test_other_volumes_are_named(volume: str, sentence: str) -> None:
    text = f"version: v4\nvolumes: {{v: {volume}}}\njobs: {{a: {{command: [x]}}}}\n"
    assert refusals(load(text).workflow) == (sentence,)
