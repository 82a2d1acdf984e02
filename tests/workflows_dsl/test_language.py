"""Features that public files do not use: their values, warnings and upgrades."""

import itertools
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest
from yaml import Node
from yaml.nodes import MappingNode, SequenceNode

from logyard_domain.definition import (
    Cpu,
    Dependency,
    Endpoint,
    GrpcCheck,
    HttpCheck,
    HttpHeader,
    Job,
    JobNetwork,
    Memory,
    Mount,
    Multinode,
    Policy,
    Replicas,
    Resource,
    Retry,
    ServicePort,
    TaskArray,
    Transfer,
    Uri,
    Volume,
    Workflow,
    injected_files,
    resolved,
)
from logyard_workflows_dsl import dump, json_schema, load, upgrade
from logyard_workflows_dsl.nodes import PureParser, composed

FILES = Path(__file__).parent / "files"
EVERYTHING = (FILES / "everything.yaml").read_text(encoding="utf-8")
NEWER = (FILES / "newer.yaml").read_text(encoding="utf-8")
OLDEST = (FILES / "oldest.yaml").read_text(encoding="utf-8")


def test_everything_has_its_value() -> None:
    loaded = load(EVERYTHING)
    assert loaded.warnings == ()
    assert (loaded.detected_version, loaded.upgraded) == ("v4", False)
    workflow = loaded.workflow
    assert workflow.preemptible
    assert workflow.files == {"settings.json": '{"depth": 3}\n', "empty.txt": ""}
    assert workflow.annotations["topology/zone"] == "rack-7"
    sweep, ring = workflow.jobs["sweep"], workflow.jobs["ring"]
    assert sweep.command == ("./run", "--rate", "0.10", "--flag", "true", "0x10", "null", "")
    assert sweep.args == ("7",)
    assert sweep.env == {"LEVEL": "4", "URL": "http://x/?a=b", "TOKEN": "secret://user/TOKEN"}
    assert sweep.task_array == TaskArray(start=10, end=1009, concurrency=50)
    assert sweep.network == JobNetwork(isolated=True, expose_tcp=(8080, 8081), expose_udp=(53,))
    assert sweep.resource == Resource(
        devices={"nvidia.com/gpu": 1, "cerebras.net/wse2": 0}, exclusive=False
    )
    assert ring.multinode == Multinode(nodes=4, implementation="gasnet", procs_per_node=8)
    assert ring.mounts == {
        "/data/in": Mount(volume="picked"),
        "/data/out": Mount(volume="picked"),
        "/old/style": Mount(volume="scratch"),
    }
    assert ring.image == Uri(
        uri="oras://registry.example.org/ring.sif:latest", decryption_secret="secret://group/KEY"
    )
    assert ring.depends_on == (
        Dependency(name="sweep", description="needs the table"),
        Dependency(name="board", status="RUNNING"),
    )


def test_everything_in_volumes_and_services() -> None:
    workflow = load(EVERYTHING).workflow
    assert workflow.volumes["scratch"] == Volume()
    picked = workflow.volumes["picked"]
    assert picked.size_bytes == 10_000_000_000
    assert picked.ingress[0] == Transfer(
        source=Uri(
            uri="hf://org/model?revision=main",
            secret="secret://organization/HF",
            cache="changed",
            cache_ttl_s=3600,
        ),
        destination=Uri(uri="file:///models/"),
        policy=Policy(timeout_ms=5_400_000, retry=Retry(attempts=1)),
    )
    assert picked.egress[0].destination.rest == "picture.png"
    board, helper = workflow.services["board"], workflow.services["helper"]
    assert board.image is not None
    assert board.image.decryption_secret == "secret://user/KEY"
    assert board.network is not None
    assert board.network.ports[1] == ServicePort(name="stats", port=8125, protocol="udp")
    assert board.network.endpoints[1] == Endpoint(
        name="rpc", port_name="rpc", protocol="grpcs", type="subdomain", scope="group"
    )
    assert board.readiness_probe is not None
    assert board.readiness_probe.check == GrpcCheck(port=9000, service="health")
    assert board.autoscaler is not None
    assert board.autoscaler.replicas == Replicas(min=0, max=4)
    assert helper.readiness_probe is not None
    assert helper.readiness_probe.failure_threshold == 3
    assert helper.readiness_probe.check == HttpCheck(
        path="/ready",
        port=80,
        scheme="HTTPS",
        http_headers=(HttpHeader(name="X-From", value="probe"),),
    )


def test_defaults_are_worked_in() -> None:
    full = resolved(load(EVERYTHING).workflow)
    sweep, ring, slots = (full.jobs[name] for name in ("sweep", "ring", "sweep-slots"))
    assert full.defaults is None
    assert sweep.env == {
        "SITE": "lab",
        "LEVEL": "4",
        "URL": "http://x/?a=b",
        "TOKEN": "secret://user/TOKEN",
    }
    assert ring.env == {"SITE": "lab", "LEVEL": "2"}
    assert sweep.mounts == {"/scratch": Mount(volume="scratch")}
    assert "/scratch" not in ring.mounts
    cpu = Cpu(cores=2, sockets=1, affinity="SOCKET")
    memory = Memory(size_bytes=512 * 2**20, by_core=True)
    assert sweep.resource == Resource(
        cpu=cpu,
        memory=memory,
        exclusive=False,
        devices={"nvidia.com/gpu": 1, "cerebras.net/wse2": 0},
        annotations={"cpu_arch": "x86_64"},
    )
    assert sweep.resource is not None
    assert (sweep.resource.cores, sweep.resource.memory_bytes) == (2, 2**30)
    assert ring.resource is not None
    assert ring.resource.exclusive is True
    assert (sweep.preemptible, ring.preemptible) == (False, True)
    retry = Retry(attempts=2, backoff_ms=500, backoff_factor=1.5, backoff_max_ms=60_000)
    assert ring.policy == Policy(timeout_ms=172_800_000, retry=retry)
    assert [retry.pause_ms(number) for number in (1, 2, 3, 90)] == [500, 750, 1125, 60_000]
    assert (slots.depends_on, slots.requires) == ((Dependency(name="ring"),), ())
    board = full.services["board"]
    assert board.env == {"SITE": "lab", "LEVEL": "3"}
    assert board.mounts == {"/shared": Mount(volume="shared")}
    assert board.resource is not None
    assert board.resource.memory == Memory(size_bytes=1_610_612_736)
    assert resolved(full) == full


def test_injected_files_are_looked_up() -> None:
    workflow = load(EVERYTHING).workflow
    assert injected_files(workflow, workflow.jobs["sweep"]) == {
        "/etc/settings.json": '{"depth": 3}\n',
        "/etc/motd": "hello\n",
    }


def test_everything_prints_stores_and_matches_the_schema() -> None:
    workflow = load(EVERYTHING).workflow
    assert load(dump(workflow)).workflow == workflow
    assert msgspec.json.decode(msgspec.json.encode(workflow), type=Workflow) == workflow
    validator = jsonschema_rs.validator_for(json_schema("v4"))
    for text in (EVERYTHING, dump(workflow)):
        plain = msgspec.yaml.decode(text)
        assert [error.message for error in validator.iter_errors(plain)] == []


def test_an_upgrade_says_old_forms_anew() -> None:
    upgraded = upgrade(EVERYTHING)
    assert upgraded.detected_version == "v4"
    assert upgraded.changes == (
        "jobs.sweep-slots.requires: now depends-on with status FINISHED",
        "jobs.ring.mounts.scratch: now `/old/style: {volume: scratch}`",
    )
    assert upgraded.text.startswith("# What public workflow files do not use: each feature")
    assert resolved(upgraded.workflow) == resolved(load(EVERYTHING).workflow)
    assert upgrade(upgraded.text).text == upgraded.text


def test_newer_and_ignored_keys_are_warnings() -> None:
    loaded = load(NEWER, file="n")
    newer = "newer than version 4.1 of the language; it is kept"
    assert [str(warning) for warning in loaded.warnings] == [
        "n:5:5  services.web.policy: ignored; only jobs have a policy, a service has no time limit",
        f"n:13:11  services.web.network.endpoints[0].per-replica: {newer}",
        f"n:14:11  services.web.network.endpoints[0].annotations: {newer}",
        f"n:18:46  services.web.autoscaler.scale-down.drain-period: {newer}",
        "n:20:5  services.pool.name: ignored; its name is `pool`, the key",
        "n:22:16  services.pool.env[1]: A is set before; this value wins",
        "n:25:5  services.pool.requires: ignored, since depends-on is set; leave it out",
        "n:27:53  volumes.data.name: ignored, since `reference` says which volume it is; "
        "leave it out",
        "n:28:15  volumes.old.type: deprecated; `use` and `name` took its place",
        "n:29:1  completed: ignored; it is no field for people, leave it out",
    ]
    web, pool = loaded.workflow.services["web"], loaded.workflow.services["pool"]
    assert web.network is not None
    assert web.network.endpoints[0].per_replica
    assert web.network.endpoints[0].annotations == {"kind": "demo"}
    assert pool.env == {"A": "2"}
    assert loaded.workflow.volumes["data"].name is None
    assert load(dump(loaded.workflow)).workflow == loaded.workflow


def test_the_oldest_form_is_upgraded() -> None:
    upgraded = upgrade(OLDEST)
    assert upgraded.changes == (
        "version: v1 is now v4",
        "volumes.data_volume.reference: volume://user/ephemeral/scratch is now `use: ephemeral`",
        "volumes.shared.reference: volume://account/fast/results is now `use: fast` and "
        "`name: results`; v4 has no scope in addresses",
        "volumes.temporary.type: EPHEMERAL is now `use: ephemeral`",
        "jobs.check.requires: now depends-on with status FINISHED",
        "volumes.data_volume.name: dropped; in v4 a name means a persistent volume of that name",
        "jobs.make.mounts.data_volume: now `/data: {volume: data_volume}`",
        "jobs.make.mounts.shared: now `/shared: {volume: shared}`",
        "jobs.check.mounts.data_volume: now `/data: {volume: data_volume}`",
    )
    assert upgraded.text == (
        "# The first form of the language.\n# Two lines of it.\n\nversion: v4\n"
        "volumes:\n  data_volume:\n    use: ephemeral\n"
        "  shared:\n    use: fast\n    name: results\n"
        "  mine:\n    reference: volume://user/persistent\n"
        "  temporary:\n    use: ephemeral\n"
        "  host:\n    type: HOST\n    path: /srv/data\n"
        "jobs:\n  make:\n    image:\n      uri: docker://alpine\n"
        "    command:\n      - make\n    mounts:\n"
        "      /data:\n        volume: data_volume\n      /shared:\n        volume: shared\n"
        "  check:\n    image:\n      uri: docker://alpine\n"
        "    command:\n      - make\n      - check\n    mounts:\n"
        "      /data:\n        volume: data_volume\n"
        "    depends-on:\n      - name: make\n        status: FINISHED\n"
    )
    assert load(upgraded.text).workflow == load(OLDEST).workflow
    assert load(OLDEST).upgraded


def test_json_is_read_like_yaml() -> None:
    text = (
        b'{"version": "v4", "volumes": {"v": {}}, "jobs": {"a": {"command": ["x", 1],'
        b' "mounts": {"/v": {"volume": "v"}}, "policy": {"timeout": {"execute": "90s"}}}}}'
    )
    assert load(text).workflow == Workflow(
        volumes={"v": Volume()},
        jobs={
            "a": Job(
                command=("x", "1"),
                mounts={"/v": Mount(volume="v")},
                policy=Policy(timeout_ms=90_000),
            )
        },
    )


def test_nulls_are_absent_and_empty_things_are_kept() -> None:
    workflow = load(
        "version: v4\ndefaults: {}\nvolumes: {v: , w: {}}\nfiles: {empty: }\n"
        "jobs:\n  a:\n    command: [x]\n    env:\n    policy: ~\n    cwd: null\n"
        "    resource: {devices: , cpu: {cores: }}\n"
    ).workflow
    assert workflow.volumes == {"v": Volume(), "w": Volume()}
    assert workflow.files == {"empty": ""}
    assert workflow.jobs == {"a": Job(command=("x",), resource=Resource(cpu=Cpu()))}


def test_anchors_and_merge_keys() -> None:
    workflow = load(
        "version: v4\njobs:\n"
        "  a: &a {command: [x], cwd: /a, resource: {cpu: {cores: 3}}}\n"
        "  b: {<<: *a, cwd: /b}\n"
        "  c: {cwd: /c, <<: [{cwd: /d, args: [y]}, *a]}\n"
    ).workflow
    cpu = Resource(cpu=Cpu(cores=3))
    assert workflow.jobs["b"] == Job(command=("x",), cwd="/b", resource=cpu)
    assert workflow.jobs["c"] == Job(command=("x",), args=("y",), cwd="/c", resource=cpu)


@pytest.mark.parametrize(
    ("written", "cores"), [("4", 4), ("'4'", 4), ("010", 10), ("0x10", 16), ("0o10", 8), ("+2", 2)]
)
def test_whole_numbers_as_in_yaml_1_2(written: str, cores: int) -> None:
    text = f"version: v4\njobs: {{a: {{command: [x], resource: {{cpu: {{cores: {written}}}}}}}}}\n"
    resource = load(text).workflow.jobs["a"].resource
    assert resource is not None
    assert resource.cores == cores


def test_an_image_may_bring_the_command() -> None:
    text = "version: v4\njobs: {a: {image: {uri: 'docker://x'}, args: [--fast]}}\n"
    assert load(text).workflow.jobs["a"].args == ("--fast",)


def test_array_without_concurrency_is_bounded() -> None:
    assert TaskArray(start=1, end=10).tasks_at_once == 10
    assert TaskArray(start=1, end=10_000).tasks_at_once == 200
    assert TaskArray(start=1, end=10_000, concurrency=7).tasks_at_once == 7


def _places(node: Node) -> list[tuple[str, int, int]]:
    """Tag and value, line and column of a node and all below it."""
    value, mark = node.value, node.start_mark
    if isinstance(value, str):
        return [(f"{node.tag} {value}", mark.line, mark.column)]
    pairs: list[tuple[Node, Node]] = value if isinstance(node, MappingNode) else []
    items: list[Node] = value if isinstance(node, SequenceNode) else []
    below = [*itertools.chain.from_iterable(pairs), *items]
    return [(node.tag, mark.line, mark.column), *(found for one in below for found in _places(one))]


@pytest.mark.parametrize("text", [EVERYTHING, NEWER, OLDEST])
def test_without_libyaml_nodes_are_the_same(text: str) -> None:
    assert _places(composed(text, "f", PureParser)) == _places(composed(text, "f"))


def test_examples_of_the_reference_page_are_good() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "workflow-language.md"
    blocks = page.read_text(encoding="utf-8").split("```yaml\n")[1:]
    examples = [block.partition("```")[0] for block in blocks]
    complete = [text for text in examples if text.startswith("version:")]
    assert len(complete) >= 5
    for text in complete:
        assert load(text, file="example").warnings == ()
