"""Bad files: where each problem is, its path, and what it says."""

import pytest

from logyard_domain.definition import limits
from logyard_workflows_dsl import Problem, Unreadable, load, report

JOB = "version: v4\njobs:\n  a:\n    command: [x]\n"
SERVICE = "version: v4\nservices:\n  s:\n    command: [x]\n"


def problems_of(text: str | bytes) -> list[str]:
    with pytest.raises(Unreadable) as refused:
        load(text, file="f")
    return [str(problem).removeprefix("f:") for problem in refused.value.problems]


TABLE: dict[str, tuple[str, list[str]]] = {
    "empty": (
        "",
        ["1:1  there is nothing in it; a workflow begins with `version: v4` and has `jobs`"],
    ),
    "a list": (
        "- a",
        ["1:1  a mapping is wanted here, not a list; write `version:` and so on under it"],
    ),
    "text": ("hello", ["1:1  a mapping is wanted here, not text; write `version: hello` under it"]),
    "no version": (
        "jobs: {a: {command: [x]}}",
        ["1:1  version: missing; write `version: v4`"],
    ),
    "unknown version": (
        JOB.replace("v4", "v5"),
        ["1:10  version: `v5` is not known here; there are v4, v1"],
    ),
    "nothing to run": (
        "version: v4\n",
        ["1:1  jobs: there is no job and no service; a workflow has at least one"],
    ),
    "two documents": (
        JOB + "---\n" + JOB,
        ["5:1  a second document begins here; a file holds one workflow"],
    ),
    "tab": (JOB + "\tcwd: /x\n", ["5:1  a tab is used for indentation; YAML takes blanks only"]),
    "colon in text": (
        JOB + "    cwd: /a: b\n",
        ["5:12  a second `: ` in one line; put the text in quotes"],
    ),
    "open bracket": (
        "version: v4\njobs: [a\n",
        [
            "3:1  this is no YAML: did not find expected ',' or ']' (while parsing "
            "a flow sequence begun in line 2)"
        ],
    ),
    "control character": (
        JOB + "    cwd: /\x07\n",
        [
            "5:11  character U+0007 is not allowed in YAML; "
            'write it as an escape in double quotes, for instance "\\u001b"'
        ],
    ),
    "deep nesting": ("[" * 100 + "]" * 100, ["1:64  nested too deeply; the most is 64 levels"]),
    "key twice": (
        JOB + "    command: [y]\n",
        ["5:5  jobs.a.command: given twice; the first is in line 4"],
    ),
    "key that is a list": (
        JOB + "    [x]: y\n",
        ["5:5  jobs.a: a key is a word, not a list or mapping"],
    ),
    "own tag": (
        JOB + "    cwd: !path /x\n",
        ["5:10  jobs.a.cwd: the tag !path means nothing here; leave it out"],
    ),
    "unknown field": (
        JOB + "    resource: {cpu: {corse: 2}}\n",
        ["5:22  jobs.a.resource.cpu.corse: unknown field; did you mean `cores`?"],
    ),
    "camel case": (
        JOB + "    taskArray: {start: 1, end: 2}\n",
        ["5:5  jobs.a.taskArray: unknown field; did you mean `task-array`?"],
    ),
    "another habit": (
        JOB + "    needs: [b]\n",
        ["5:5  jobs.a.needs: unknown field; did you mean `depends-on`?"],
    ),
    "nothing like it": (
        JOB + "    multinode: {nodes: 1, implementation: mpich, zzz: 1}\n",
        [
            "5:50  jobs.a.multinode.zzz: unknown field; "
            "there are nodes, implementation, procs-per-node"
        ],
    ),
    "field of a service": (
        JOB + "    persist: true\n",
        [
            "5:5  jobs.a.persist: unknown field; only a service has `persist`; "
            "move the job under `services`"
        ],
    ),
    "priority": (
        JOB + "priority: -5\n",
        [
            "5:1  priority: unknown field; a priority is given when the workflow "
            "is started, not in its file"
        ],
    ),
    "array of a service": (
        SERVICE + "    task-array: {start: 1, end: 2}\n",
        ["5:5  services.s.task-array: unknown field; only a job can be a task array"],
    ),
    "name rule": (
        "version: v4\njobs:\n  my_job:\n    command: [x]\n",
        [
            "3:3  jobs.my_job: `my_job` is no name of small letters, digits and `-`, starting and "
            "ending with a letter or digit, at most 63 characters; write for instance render-tiles"
        ],
    ),
    "long name": (
        f"version: v4\njobs:\n  {'a' * 64}:\n    command: [x]\n",
        [f"3:3  jobs.{'a' * 64}: it has 64 characters; the most is 63"],
    ),
    "one name for two": (
        JOB + "services:\n  a:\n    command: [x]\n",
        ["6:3  services.a: a job has this name already; they share their names"],
    ),
    "cycle": (
        "version: v4\njobs:\n"
        "  a: {command: [x], depends-on: [{name: b}]}\n"
        "  b: {command: [x], requires: [c]}\n"
        "  c: {command: [x], requires: [a]}\n",
        [
            "3:34  jobs.a.depends-on[0]: these wait for each other: a -> b -> c -> a; "
            "one must not wait"
        ],
    ),
    "waits for itself": (
        JOB + "    depends-on:\n      - name: a\n",
        ["6:15  jobs.a.depends-on[0].name: `a` waits for itself; leave this out"],
    ),
    "unknown dependency": (
        JOB + "    requires: [b]\nservices:\n  s: {command: [x]}\n",
        ["5:16  jobs.a.requires[0]: no job or service is called `b`; there are a, s"],
    ),
    "running job": (
        JOB + "  b:\n    command: [x]\n    depends-on: [{name: a, status: running}]\n",
        [
            "7:36  jobs.b.depends-on[0].status: `a` is a job; "
            "only a service can be waited for as RUNNING, write FINISHED"
        ],
    ),
    "status": (
        JOB + "  b:\n    command: [x]\n    depends-on: [{name: a, status: FAILED}]\n",
        [
            "7:36  jobs.b.depends-on[0].status: `FAILED` is not known here; there "
            "are FINISHED, RUNNING"
        ],
    ),
    "waited for twice": (
        JOB + "  b:\n    command: [x]\n    requires: [a, a]\n",
        ["7:19  jobs.b.requires[1]: `a` is waited for twice; leave one out"],
    ),
    "command and script": (
        JOB + "    script: echo\n",
        ["5:13  jobs.a.script: there is a `command`, too; keep one, or pass it as `args`"],
    ),
    "nothing to do": (
        "version: v4\njobs:\n  a:\n    args: [x]\n",
        [
            "3:3  jobs.a: neither `command` nor `script`, and no `image` that brings a command; "
            "write for instance `command: [echo, hello]`"
        ],
    ),
    "empty script": (
        "version: v4\njobs:\n  a:\n    script: ''\n",
        ["4:13  jobs.a.script: it is empty; leave it out"],
    ),
    "command as text": (
        "version: v4\njobs:\n  a:\n    command: echo hi\n",
        ["4:14  jobs.a.command: a list is wanted here, not text; write `[echo, hi]`"],
    ),
    "null in a command": (
        "version: v4\njobs:\n  a:\n    command: [echo, null]\n",
        [
            "4:21  jobs.a.command[1]: text is wanted here, not nothing; "
            "for the word, put it in quotes"
        ],
    ),
    "nul byte": (
        'version: v4\njobs:\n  a:\n    command: ["a\\0b"]\n',
        [
            "4:15  jobs.a.command[0]: it has a character that no program can be given, "
            "NUL or half a pair"
        ],
    ),
    "image as text": (
        JOB + "    image: docker://alpine\n",
        [
            "5:12  jobs.a.image: a mapping is wanted here, not text; write `uri: "
            "docker://alpine` under it"
        ],
    ),
    "image from nowhere": (
        JOB + "    image: {uri: git://alpine}\n",
        [
            "5:18  jobs.a.image.uri: images do not come from git://; there are docker://, "
            "oras://, fb://, fuzzball://, http://, https://"
        ],
    ),
    "image without uri": (
        JOB + "    image: {secret: secret://user/X}\n",
        ["5:12  jobs.a.image.uri: missing; write for instance `uri: docker://alpine:3.21`"],
    ),
    "secret": (
        JOB + "    image: {uri: docker://a, secret: secret://nobody/X}\n",
        [
            "5:38  jobs.a.image.secret: `secret://nobody/X` is no reference to a secret; "
            "write for instance secret://user/MY_TOKEN"
        ],
    ),
    "env without =": (
        JOB + "    env: [HOME]\n",
        ["5:11  jobs.a.env[0]: `HOME` has no `=`; write `HOME=value`"],
    ),
    "env as a mapping": (
        JOB + "    env: {HOME: /x}\n",
        [
            "5:10  jobs.a.env: a list of NAME=value is wanted here, not a mapping; "
            "write for instance `- DATA_FOLDER=/data`"
        ],
    ),
    "relative cwd": (
        JOB + "    cwd: data\n",
        [
            "5:10  jobs.a.cwd: `data` is no absolute path without `..`; "
            "write for instance /data/results"
        ],
    ),
    "cores": (
        JOB + "    resource: {cpu: {cores: 0}}\n",
        ["5:29  jobs.a.resource.cpu.cores: 0 is too small; the least is 1"],
    ),
    "cores in words": (
        JOB + "    resource: {cpu: {cores: two}}\n",
        ["5:29  jobs.a.resource.cpu.cores: `two` is no whole number; write for instance 1"],
    ),
    "cpu as a number": (
        JOB + "    resource: {cpu: 4}\n",
        [
            "5:21  jobs.a.resource.cpu: a mapping is wanted here, not text; write "
            "`cores: 4` under it"
        ],
    ),
    "affinity": (
        JOB + "    resource: {cpu: {affinity: SOCKETS}}\n",
        ["5:32  jobs.a.resource.cpu.affinity: `SOCKETS` is not known here; did you mean `SOCKET`?"],
    ),
    "size": (
        JOB + "    resource: {memory: {size: 4 gigs}}\n",
        [
            "5:31  jobs.a.resource.memory.size: `4 gigs` is no size; "
            "write for instance 512MiB, 6GB or 1.5GiB"
        ],
    ),
    "no size": (
        JOB + "    resource: {memory: {by-core: true}}\n",
        ["5:24  jobs.a.resource.memory.size: missing; write for instance `size: 1GiB`"],
    ),
    "size zero": (
        JOB + "    resource: {memory: {size: 0GB}}\n",
        ["5:31  jobs.a.resource.memory.size: a size is greater than 0; write for instance 1GiB"],
    ),
    "both spellings": (
        JOB + "    resource: {memory: {size: 1GB, by-core: true, byCore: true}}\n",
        ["5:51  jobs.a.resource.memory.byCore: exactly one of `by-core`, `byCore` is right"],
    ),
    "device count": (
        JOB + "    resource: {devices: {nvidia.com/gpu: -1}}\n",
        ['5:42  jobs.a.resource.devices["nvidia.com/gpu"]: -1 is too small; the least is 0'],
    ),
    "truth in other words": (
        JOB + "    preemptible: yes\n",
        ["5:18  jobs.a.preemptible: `yes` is text; write true or false"],
    ),
    "quoted truth": (
        JOB + "    preemptible: 'true'\n",
        ["5:18  jobs.a.preemptible: `true` is text; write true or false without quotes"],
    ),
    "duration": (
        JOB + "    policy: {timeout: {execute: 2 hours}}\n",
        [
            "5:33  jobs.a.policy.timeout.execute: `2 hours` is no duration; "
            "write for instance 2h or 1h30m"
        ],
    ),
    "duration without unit": (
        JOB + "    policy: {timeout: {execute: 120}}\n",
        ["5:33  jobs.a.policy.timeout.execute: `120` has no unit; write for instance 120s"],
    ),
    "no time at all": (
        JOB + "    policy: {timeout: {execute: 0s}}\n",
        [
            "5:33  jobs.a.policy.timeout.execute: a duration is greater than 0; "
            "write for instance 2h or 1h30m"
        ],
    ),
    "pauses": (
        JOB + "    policy: {retry: {attempts: 1, backoff: 10m}}\n",
        [
            "5:44  jobs.a.policy.retry.backoff: longer than backoff-max; "
            "lower it, or raise backoff-max"
        ],
    ),
    "factor": (
        JOB + "    policy: {retry: {attempts: 1, backoff-factor: 0.5}}\n",
        ["5:51  jobs.a.policy.retry.backoff-factor: 0.5 is out of range, 1 to 100"],
    ),
    "array backwards": (
        JOB + "    task-array: {start: 5, end: 1}\n",
        ["5:33  jobs.a.task-array.end: 1 is before start, 5; swap them"],
    ),
    "array without end": (
        JOB + "    task-array: {start: 5}\n",
        ["5:17  jobs.a.task-array.end: missing; write for instance `end: 1`"],
    ),
    "array too wide": (
        JOB + "    task-array: {start: 1, end: 5, concurrency: 201}\n",
        ["5:49  jobs.a.task-array.concurrency: 201 is too large; the most is 200"],
    ),
    "array too long": (
        JOB + "    task-array: {start: 0, end: 1000000}\n",
        ["5:33  jobs.a.task-array.end: 1000001 tasks; the most is 1000000"],
    ),
    "array on many nodes": (
        JOB + "    task-array: {start: 0, end: 1}\n    multinode: {nodes: 2, "
        "implementation: generic}\n",
        ["6:5  jobs.a.multinode: not together with task-array; make it two jobs, or use one"],
    ),
    "implementation": (
        JOB + "    multinode: {nodes: 2, implementation: slurm}\n",
        [
            "5:43  jobs.a.multinode.implementation: `slurm` is not known here; "
            "there are openmpi, ompi, mpich, gasnet, generic"
        ],
    ),
    "ports of a job": (
        JOB + "    network: {expose-tcp: [80, 99999, 80]}\n",
        [
            "5:32  jobs.a.network.expose-tcp[1]: 99999 is too large; the most is 65535",
            "5:39  jobs.a.network.expose-tcp[2]: port 80 is exposed twice; leave one out",
        ],
    ),
    "unknown volume": (
        JOB + "    mounts: {/data: {volume: dat}}\nvolumes: {data: {}}\n",
        ['5:30  jobs.a.mounts["/data"].volume: no volume is called `dat`; there is data'],
    ),
    "unknown volume, short": (
        JOB + "    mounts: {/data: dat}\nvolumes: {data: {}}\n",
        ['5:21  jobs.a.mounts["/data"]: no volume is called `dat`; there is data'],
    ),
    "unknown volume, v1": (
        JOB + "    mounts: {dat: {location: /data}}\nvolumes: {data: {}}\n",
        ["5:14  jobs.a.mounts.dat: no volume is called `dat`; there is data"],
    ),
    "unknown volume in defaults": (
        JOB + "defaults: {job: {mounts: {/data: d}}}\n",
        ['5:34  defaults.job.mounts["/data"]: no volume is called `d`; there is none'],
    ),
    "two mounts at one path": (
        JOB + "    mounts: {/data/: v, //data: v, v: {location: /data}}\nvolumes: {v: {}}\n",
        [
            '5:25  jobs.a.mounts["//data"]: a volume is mounted at /data already',
            "5:36  jobs.a.mounts.v: a volume is mounted at /data already",
        ],
    ),
    "relative mount": (
        JOB
        + "    mounts: {data: {volume: v}, v: /x, w: {location: y}, /z: , u: }\nvolumes: {v: {}}\n",
        [
            "5:14  jobs.a.mounts.data: `data` is no absolute path; write `/data: {volume: ...}`",
            "5:33  jobs.a.mounts.v: `v` is no absolute path; write `/x: {volume: v}`",
            "5:54  jobs.a.mounts.w.location: `y` is no absolute path without `..`; "
            "write for instance /data/results",
            '5:58  jobs.a.mounts["/z"]: the volume is missing; write for instance `{volume: data}`',
            "5:64  jobs.a.mounts.u: the path is missing; write for instance `/data: {volume: u}`",
        ],
    ),
    "mount over everything": (
        JOB + "    mounts: {/: v}\nvolumes: {v: {}}\n",
        ['5:14  jobs.a.mounts["/"]: a volume cannot be mounted over `/`; write a folder below it'],
    ),
    "file that does not exist": (
        JOB + "    files: {/etc/x: file://y}\nfiles: {z: ''}\n",
        ['5:21  jobs.a.files["/etc/x"]: `files` has no `y`; there is z'],
    ),
    "two addresses": (
        JOB + "volumes: {v: {reference: volume://user/ephemeral, name: w, use: fast}}\n",
        [
            "5:57  volumes.v.name: there is a `reference`, too; keep it, or `name` "
            "with `use: persistent`",
            "5:65  volumes.v.use: there is a `reference`, too; keep one",
        ],
    ),
    "reference": (
        JOB + "volumes: {v: {reference: user/ephemeral}}\n",
        [
            "5:26  volumes.v.reference: `user/ephemeral` is no volume reference; write for "
            "instance volume://user/ephemeral or volume://group/persistent/data"
        ],
    ),
    "persistent without name": (
        JOB + "volumes: {v: {use: persistent}}\n",
        ["5:20  volumes.v.use: persistent, but which? add the volume's `name`"],
    ),
    "ephemeral with name": (
        JOB + "volumes: {v: {use: ephemeral, name: w}}\n",
        [
            "5:37  volumes.v.name: an ephemeral volume has no name; leave it out, "
            "or `use: persistent`"
        ],
    ),
    "host without path": (
        JOB + "volumes: {v: {type: HOST}}\n",
        ["5:21  volumes.v.type: HOST, but which folder? add its `path`"],
    ),
    "transfers": (
        JOB
        + "volumes:\n  v:\n    ingress:\n"
        + "      - {source: {uri: file://no}, destination: {uri: s3://b/x}}\n"
        + "      - {source: {uri: results://no}, destination: {uri: file://../x}}\n"
        + "    egress:\n"
        + "      - {source: {uri: file://x}, destination: {uri: https://x/y}}\n"
        + "      - {source: {uri: file://x}, destination: {uri: results://../y}}\n"
        + "      - {source: {uri: file://x}}\n",
        [
            "8:24  volumes.v.ingress[0].source.uri: `files` has no `no`; there is none",
            "8:55  volumes.v.ingress[0].destination.uri: a path within the volume is wanted here, "
            "without `..`; for instance file://data/in.csv",
            "9:24  volumes.v.ingress[1].source.uri: data is not fetched from results://; there are "
            "file://, http://, https://, ftp://, s3://, hf://, fb://, fuzzball://",
            "9:58  volumes.v.ingress[1].destination.uri: a path within the volume is wanted here, "
            "without `..`; for instance file://data/in.csv",
            "11:54  volumes.v.egress[0].destination.uri: data is not sent to https://; there are "
            "results://, s3://, fb://, fuzzball://",
            "12:54  volumes.v.egress[1].destination.uri: a path within the results folder, "
            "without `..`; for instance results://out.png",
            "13:9  volumes.v.egress[2].destination: missing; write it",
        ],
    ),
    "later field in v1": (
        "version: v1\njobs: {a: {command: [x]}}\nvolumes: {v: {size: 1GB}}\n",
        [
            "3:15  volumes.v.size: unknown field; it belongs to version v4; "
            "write `version: v4`, or `workflow upgrade` the file"
        ],
    ),
    "ports": (
        SERVICE
        + "    network:\n      ports:\n"
        + "        - {name: a, port: 1}\n        - {name: a, port: 1}\n"
        + "        - {name: u, port: 2, protocol: udp}\n      endpoints:\n"
        + "        - {name: e, port-name: b}\n        - {name: e, port-name: u}\n",
        [
            "8:18  services.s.network.ports[1].name: `a` is the name of two ports",
            "8:27  services.s.network.ports[1].port: port 1 (tcp) is there twice",
            "11:32  services.s.network.endpoints[0].port-name: no port is called "
            "`b`; there are a, u",
            "12:18  services.s.network.endpoints[1].name: `e` is the name of two endpoints",
            "12:32  services.s.network.endpoints[1].port-name: `u` is a udp port; "
            "endpoints lead to tcp ports",
        ],
    ),
    "two checks": (
        SERVICE + "    readiness-probe: {exec: {command: [x]}, grpc: {port: 1}}\n",
        [
            "5:45  services.s.readiness-probe.grpc: exactly one of `exec`, `http-get`, "
            "`tcp-socket`, `grpc` is right"
        ],
    ),
    "no check": (
        SERVICE + "    readiness-probe: {period-seconds: 1}\n",
        [
            "5:22  services.s.readiness-probe: missing; "
            "write one of exec, http-get, tcp-socket, grpc"
        ],
    ),
    "empty check": (
        SERVICE + "    readiness-probe: {exec: {command: []}}\n",
        [
            "5:30  services.s.readiness-probe.exec.command: it is empty; "
            "write for instance [test, -f, /tmp/ready]"
        ],
    ),
    "scaling": (
        SERVICE
        + "    autoscaler:\n      replicas: {min: 3, max: 2}\n      scale-up:\n        triggers:\n"
        + "          - {metrics-query: q, services: [t]}\n"
        + "          - {metrics-query: q}\n"
        + "          - {metrics-query: q, services: [s, nn, t]}\n"
        + "      scale-down: {metrics-query: q, services: [t], drain-period: 601}\n"
        + "  t: {command: [x]}\n",
        [
            "6:7  services.s.autoscaler.replicas: not where triggers scale other services; "
            "give those their replicas",
            "6:23  services.s.autoscaler.replicas.min: 3 is more than max, 2",
            "10:13  services.s.autoscaler.scale-up.triggers[1]: either all triggers of a service "
            "name `services`, or none does",
            "11:43  services.s.autoscaler.scale-up.triggers[2].services[0]: a trigger names other "
            "services; leave `services` out to scale this one",
            "11:46  services.s.autoscaler.scale-up.triggers[2].services[1]: no service is called "
            "`nn`; there are s, t",
            "11:50  services.s.autoscaler.scale-up.triggers[2].services[2]: a "
            "trigger of `s` scales "
            "`t` already",
            "12:38  services.s.autoscaler.scale-down.services: unknown field; what shrinks is the "
            "service itself; leave it out",
            "12:67  services.s.autoscaler.scale-down.drain-period: 601 is too "
            "large; the most is 600",
        ],
    ),
    "config of nothing": (
        SERVICE + "    dynamic-config: {path: /x, services: [t], script: echo}\n",
        ["5:43  services.s.dynamic-config.services[0]: no service is called `t`; there is s"],
    ),
    "defaults of services": (
        JOB + "defaults: {service: {policy: {}}}\n",
        [
            "5:22  defaults.service.policy: unknown field; "
            "services have no policy; write it under `defaults.job`"
        ],
    ),
    "merge of a word": (
        JOB + "    <<: x\n",
        ['5:9  jobs.a["<<"]: `<<` takes mappings that have no `<<` themselves'],
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_problems(case: str) -> None:
    text, expected = TABLE[case]
    assert problems_of(text) == expected


def test_all_problems_of_a_file_at_once_with_aligned_texts() -> None:
    text = (
        "version: v4\njobs:\n  prepare: {command: [x]}\n  render:\n    command: [x]\n"
        "    resource: {cpu: {corse: 2}}\n  assemble:\n    command: [x]\n    depends-on:\n"
        "      - name: rendr\n    policy: {timeout: {execute: 2 hours}}\n"
    )
    with pytest.raises(Unreadable) as refused:
        load(text, file="bad.yaml")
    assert str(refused.value).split("\n") == [
        "bad.yaml:6:22   jobs.render.resource.cpu.corse: unknown field; did you mean `cores`?",
        "bad.yaml:10:15  jobs.assemble.depends-on[0].name: no job or service is called `rendr`; "
        "there are prepare, render, assemble",
        "bad.yaml:11:33  jobs.assemble.policy.timeout.execute: `2 hours` is no duration; "
        "write for instance 2h or 1h30m",
    ]
    assert str(refused.value) == report(refused.value.problems)


def test_what_failed_is_not_reported_as_missing_too() -> None:
    assert problems_of("version: v4\njobs: {a: {script: [x], mounts: {/d: v}}}\nvolumes: []\n") == [
        "2:20  jobs.a.script: text is wanted here, not a list",
        "3:10  volumes: a mapping of names is wanted here, not a list; "
        "write for instance `data_volume:` under it",
    ]


def test_a_failed_entry_does_not_shift_the_places_of_others() -> None:
    text = JOB + "    depends-on:\n      - 5\n      - name: b\n      - {}\n      - name: c\n"
    assert problems_of(text) == [
        "6:9  jobs.a.depends-on[0]: a mapping is wanted here, not text; write `name: 5` under it",
        "7:15  jobs.a.depends-on[1].name: no job or service is called `b`; there is a",
        "8:9  jobs.a.depends-on[2].name: missing; write it",
        "9:15  jobs.a.depends-on[3].name: no job or service is called `c`; there is a",
    ]


def test_bytes_that_are_no_utf8() -> None:
    assert problems_of(JOB.encode() + b"    cwd: /\xff\n") == ["5:11  byte 0xff is no UTF-8"]
    assert load(b"\xef\xbb\xbf" + JOB.encode()).workflow.jobs["a"].command == ("x",)


def test_limits_are_refusals() -> None:
    long = JOB + "#" * limits.TEXT_BYTES_MAX
    assert problems_of(long) == [
        f"1:1  it has {len(long)} bytes; the most is {limits.TEXT_BYTES_MAX}"
    ]
    words = ", ".join(["x"] * 2000)
    bomb = f"version: v4\njobs:\n  a: &a {{command: [{words}]}}\n" + "".join(
        f"  a{index}: *a\n" for index in range(200)
    )
    (problem,) = problems_of(bomb)
    assert problem.endswith(f"more than {limits.VALUES_MAX} values, counting each use of an alias")
    many = "version: v4\njobs:\n" + "".join(
        f"  J{index}: {{command: [x]}}\n" for index in range(150)
    )
    found = problems_of(many)
    assert len(found) == limits.PROBLEMS_MAX + 1
    assert found[-1] == "102:3  50 more problems are not listed"
    jobs = "version: v4\njobs:\n" + "".join(
        f"  j{index}: {{command: [x]}}\n" for index in range(limits.STAGES_MAX + 1)
    )
    assert problems_of(jobs) == [
        f"2:1  jobs: more than {limits.STAGES_MAX} jobs and services in one workflow"
    ]


def test_an_alias_that_contains_itself_is_refused() -> None:
    assert problems_of("version: v4\njobs: &j\n  a: *j\n")[0].startswith(
        "3:3  jobs.a.a: unknown field"
    )


def test_problems_are_ordered_by_place() -> None:
    first, second = Problem("f", 2, 1, "b", "x"), Problem("f", 10, 1, "a", "x")
    assert sorted([second, first]) == [first, second]
    assert str(Problem("f", 1, 2, "", "x")) == "f:1:2  x"
