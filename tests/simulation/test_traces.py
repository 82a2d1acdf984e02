"""Traces are read from each format, whatever the file is called, and errors say where and what."""

import gzip
from pathlib import Path

import pytest

from logyard_domain.resources import Capacity
from logyard_engine.simulation.traces.metacentrum import NODES, Wish, wish
from logyard_engine.simulation.traces.openb import GPU
from logyard_engine.simulation.traces.opening import read_trace
from logyard_engine.simulation.traces.trace import (
    BadTrace,
    Trace,
    TraceJob,
    clairvoyant,
    compressed,
    shortened,
)

SWF = """; Version: 2.2
; MaxNodes: 8
; MaxProcs: 16 processors in all
; UnixStartTime: 1000
;
  3  40 -1  10.9  2 -1 -1  4   60 -1 1 7 2 -1 -1 -1 -1 -1

  1  40  0  100  -1 -1 -1  2   90 -1 1 -1 -1 -1 -1 -1 -1 -1
  2   0  0   -1   1 -1 -1  1   90 -1 0 1 1 -1 -1 -1 -1 -1
  4   5  0   20   1 -1 -1 -1   -1 -1 1 1 1 -1 -1 -1 -1 -1
  5  -1  0   20   1 -1 -1 -1   -1 -1 1 1 1 -1 -1 -1 -1 -1
  6   9  0   20   0 -1 -1 -1   -1 -1 1 1 1 -1 -1 -1 -1 -1
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
deletion_time,scheduled_time
a,3152,1024,1,460,,LS,Running,20,100,30.0
b,8000,2048,2,1000,V100M16|T4,BE,Succeeded,10,100,10.0
c,8000,2048,0,0,,BE,Pending,10,100,
"""
NODE_TABLE = """sn,cpu_milli,memory_mib,gpu,model
n0,32000,65536,2,T4
n1,96000,65536,8,G2
n2,8000,1024,0,
"""


def _file(folder: Path, text: str, name: str = "work", packed: bool = False) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_the_standard_workload_format(tmp_path: Path, packed: bool) -> None:
    found = read_trace(_file(tmp_path, SWF, packed=packed))
    assert found == Trace(
        format="swf",
        jobs=(
            TraceJob("4", 5, 20, 20, user="u1", group="g1"),
            TraceJob("3", 40, 10, 60, chunks=4, user="u7", group="g2"),
            TraceJob("1", 40, 100, 90, chunks=2),
        ),
        processors=16,
        unix_s=1000,
        skipped={
            "it never ran": 1,
            "it has no instant of submission": 1,
            "it has no processors": 1,
        },
    )


def test_traces_are_shortened_compressed_and_made_clairvoyant(tmp_path: Path) -> None:
    found = read_trace(_file(tmp_path, SWF))
    assert [job.id for job in shortened(found, 2).jobs] == ["4", "3"]
    assert [job.submit_s for job in compressed(found, 10).jobs] == [5, 8, 8]
    # A job that runs longer than it said is ended then, so nobody could have known better.
    assert [(job.run_s, job.estimate_s) for job in clairvoyant(found).jobs] == [
        (20, 20),
        (10, 10),
        (90, 90),
    ]


def test_openb_pods_find_their_nodes(tmp_path: Path) -> None:
    _file(tmp_path, NODE_TABLE, "openb_node_list.csv.gz", packed=True)
    found = read_trace(_file(tmp_path, PODS, "openb_pods.csv"))
    mib = 1 << 20
    wants = "gpu.T4_V100M16"
    assert found.jobs == (
        TraceJob(
            "b", 10, 90, 90, cores=8, memory=2048 * mib, devices=((GPU, 2000),),
            annotations=((wants, "yes"),), group="BE", preemptible=True,
        ),
        TraceJob("a", 20, 70, 70, cores=4, memory=1024 * mib, devices=((GPU, 460),), group="LS"),
    )  # fmt: skip
    assert [node.annotations for node in found.nodes] == [{wants: "yes"}, {}, {}]
    assert [node.capacity for node in found.nodes] == [
        Capacity(cores=32, memory=65536 * mib, devices={GPU: 2000}),
        Capacity(cores=96, memory=65536 * mib, devices={GPU: 8000}),
        Capacity(cores=8, memory=1024 * mib),
    ]
    assert found.processors == 136
    assert found.skipped == {"it was never scheduled": 1}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1:ppn=64:x86_64:cl_zewura#excl", Wish(1, 64, ("x86_64", "cl_zewura"), True, 0)),
        ("8:ppn=8", Wish(8, 8, (), False, 0)),
        ("1:ppn=1+3:ppn=2", Wish(4, 2, (), False, 0)),
        ("1:ppn=1.5", Wish(1, 2, (), False, 0)),
        ("2:infiniband", Wish(2, 1, ("infiniband",), False, 0)),
        ("zewura15.cerit-sc.cz:ppn=2", Wish(1, 2, ("zewura15",), False, 0)),
        ("1:ppn=1:mem=3gb:host=zewura10", Wish(1, 1, ("zewura10",), False, 3 << 30)),
        ("1:ppn=4:^zewura12.cerit-sc.cz", Wish(1, 4, ("not.zewura12",), False, 0)),
    ],
)
def test_what_a_metacentrum_job_wants_of_nodes(text: str, meant: Wish) -> None:
    assert wish(text, "here") == meant


def test_a_metacentrum_trace_knows_its_machine(tmp_path: Path) -> None:
    line = "7 1356996147 0 60 {n} 1 1024 {n} 90 1073741824 1 62 1 1 -1 1 1 1 {{1}} q_2h {wish}\n"
    text = line.format(n=24, wish="2:ppn=12:^cl_zewura") + line.format(n=1, wish="1:ppn=1:nfs4")
    found = read_trace(_file(tmp_path, text))
    assert found.format == "metacentrum"
    assert found.jobs[0] == TraceJob(
        "7", 1356996147, 60, 90, chunks=2, cores=12, memory=1 << 30,
        annotations=(("not.cl_zewura", "yes"),), user="u62", group="q_2h",
    )  # fmt: skip
    assert len(found.nodes) == len(NODES) == 68
    assert found.processors == 20 * 80 + 48 * 12
    tags = {node.name.rstrip("0123456789"): set(node.annotations) for node in found.nodes}
    assert tags == {"zewura": {"nfs4"}, "zegox": {"nfs4", "not.cl_zewura"}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("; only a header\n", "there is no job in it"),
        ("hello world\n", "this is no trace that can be read"),
        (SWF.replace(" 100  -1", " ten  -1"), "line 8: field 4 is 'ten', which is no number"),
        (SWF + "1 2 3\n", "line 13: 3 fields; a job has at least 11"),
        (SWF.replace("16 proc", "many proc"), "MaxProcs in the header is 'many'"),
        (SWF.replace("  4   5", "  1   5"), "line 10: there is a job 1 already"),
        ("1 0 0 -1 1 -1 -1 1 -1 -1 0 1 1\n", "no line of it is a job that ran"),
        (NODE_TABLE, "this is the table of nodes; name the table of pods"),
        (PODS, "its table of nodes is not beside it; name it: --nodes"),
        (
            "1 9 0 5 1 1 9 1 9 9 1 6 1 1 -1 1 1 1 {1} q 1:ppn=none\n",
            "line 1: field 21 has ppn=none; write a number of cores",
        ),
        (
            "1 9 0 5 1 1 9 1 9 9 1 6 1 1 -1 1 1 1 {1} q 1:ppn=1\n1 2 3\n",
            "line 2: 3 fields; this trace has 21",
        ),
    ],
)
def test_errors_say_where_what_and_what_would_be_right(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(BadTrace) as trouble:
        read_trace(_file(tmp_path, text))
    assert said in str(trouble.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="missing: it cannot be read: No such file"):
        read_trace(tmp_path / "missing")
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(SWF.encode())[:60])
    with pytest.raises(BadTrace, match="it cannot be read: Compressed file ended"):
        read_trace(broken)
    with pytest.raises(BadTrace, match="only an openb trace has a table of nodes"):
        read_trace(_file(tmp_path, SWF), tmp_path / "nodes.csv")
    nodes = _file(tmp_path, NODE_TABLE.replace("65536", "much"), "t.csv")
    with pytest.raises(BadTrace, match=r"t\.csv: line 2: memory_mib is 'much'"):
        read_trace(_file(tmp_path, PODS, "pods.csv"), nodes)
