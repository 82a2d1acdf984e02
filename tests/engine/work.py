"""Short ways to say definitions in scenarios."""

from logyard_domain.definition import (
    Cpu,
    Dependency,
    Job,
    Memory,
    Mount,
    Multinode,
    Policy,
    Resource,
    Retry,
    TaskArray,
    Transfer,
    Uri,
    Volume,
    Workflow,
)


def job(
    cores: int = 1,
    *,
    after: tuple[str, ...] = (),
    memory: int = 0,
    array: tuple[int, int] | None = None,
    concurrency: int = 0,
    retries: int = 0,
    timeout_ms: int | None = None,
    devices: dict[str, int] | None = None,
    annotations: dict[str, str] | None = None,
    exclusive: bool = False,
    mounts: dict[str, str] | None = None,
    nodes: int = 1,
    preemptible: bool | None = None,
) -> Job:
    """A job that runs `true`."""
    return Job(
        command=("true",),
        depends_on=tuple(Dependency(name=name) for name in after),
        preemptible=preemptible,
        multinode=Multinode(nodes=nodes, implementation="generic") if nodes > 1 else None,
        mounts={path: Mount(volume=key) for path, key in (mounts or {}).items()},
        task_array=TaskArray(start=array[0], end=array[1], concurrency=concurrency)
        if array
        else None,
        policy=Policy(
            timeout_ms=timeout_ms,
            retry=Retry(attempts=retries) if retries else None,
        ),
        resource=Resource(
            cpu=Cpu(cores=cores),
            memory=Memory(size_bytes=memory) if memory else None,
            devices=devices or {},
            annotations=annotations or {},
            exclusive=exclusive,
        ),
    )


def flow(**jobs: Job) -> Workflow:
    """A workflow of these jobs."""
    return Workflow(jobs=jobs)


def staged() -> Workflow:
    """A file goes into a volume, a job works on it, a result comes out."""
    return Workflow(
        files={"in.txt": "hello"},
        volumes={
            "data": Volume(
                ingress=(
                    Transfer(source=Uri(uri="file://in.txt"), destination=Uri(uri="file://in.txt")),
                ),
                egress=(
                    Transfer(
                        source=Uri(uri="file://out.txt"), destination=Uri(uri="results://out.txt")
                    ),
                ),
            ),
            "more": Volume(),
        },
        jobs={"work": job(mounts={"/data": "data", "/more": "more"})},
    )
