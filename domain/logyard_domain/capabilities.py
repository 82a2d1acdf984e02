"""What a valid workflow may ask for that Logyard does not run yet, in sentences for its author."""

from collections.abc import Callable, Iterator

from logyard_domain.definition.programs import Job, Program
from logyard_domain.definition.resolution import resolved
from logyard_domain.definition.uris import Uri
from logyard_domain.definition.volumes import Transfer, Volume
from logyard_domain.definition.workflow import Workflow
from logyard_domain.resources import MULTINODE


def refusals(
    workflow: Workflow, offered: Callable[[str], bool] = lambda _: False
) -> tuple[str, ...]:
    """One sentence for each feature that stands in the way of a start; none means that it runs.

    `offered` tells whether a node announces a feature. Each sentence begins with the path of what
    it is about, and says what would run.
    """
    full = resolved(workflow)
    return (
        *(one for key, volume in full.volumes.items() for one in _volume(key, volume)),
        *(one for name, job in full.jobs.items() for one in _job(f"jobs.{name}", job, offered)),
        *(
            f"services.{name}: services are not run yet; leave it out, or make it a job"
            for name in full.services
        ),
    )


def _volume(key: str, volume: Volume) -> Iterator[str]:
    path = f"volumes.{key}"
    if volume.type == "HOST":
        yield f"{path}.type: folders of the host are not mounted yet; use an ephemeral volume, {{}}"
    elif volume.reference is not None or volume.name is not None:
        yield (
            f"{path}: persistent volumes are not run yet; use an ephemeral volume, {{}}, "
            "and keep results with egress to results://"
        )
    elif not volume.is_ephemeral:
        yield f"{path}.use: storage provisioners are not run yet; leave `use` out"
    if volume.annotations:
        yield (
            f"{path}.annotations: provisioners are not chosen by annotation yet; "
            "leave `annotations` out"
        )
    for index, transfer in enumerate(volume.ingress):
        yield from _ingress(f"{path}.ingress[{index}]", transfer)
    for index, transfer in enumerate(volume.egress):
        yield from _egress(f"{path}.egress[{index}]", transfer)


def _ingress(path: str, transfer: Transfer) -> Iterator[str]:
    if transfer.source.scheme != "file":
        yield (
            f"{path}.source.uri: data from {transfer.source.scheme}:// is not fetched yet; "
            "put it under `files` and use file://<name>, or fetch it in a job"
        )
    yield from _secrets(f"{path}.source", transfer.source)
    yield from _secrets(f"{path}.destination", transfer.destination)


def _egress(path: str, transfer: Transfer) -> Iterator[str]:
    if transfer.destination.scheme != "results":
        yield (
            f"{path}.destination.uri: data is not sent to {transfer.destination.scheme}:// yet; "
            "use results://<path>, a folder that the server keeps"
        )
    yield from _secrets(f"{path}.source", transfer.source)
    yield from _secrets(f"{path}.destination", transfer.destination)


def _secrets(path: str, uri: Uri) -> Iterator[str]:
    for name, used in (
        ("secret", uri.secret),
        ("decryptionSecret", uri.decryption_secret),
        ("secrets", uri.secrets),
    ):
        if used:
            yield f"{path}.{name}: secrets are not resolved yet; leave `{name}` out"


def _job(path: str, job: Job, offered: Callable[[str], bool]) -> Iterator[str]:
    yield from _program(path, job)
    if job.multinode is not None and job.multinode.nodes > 1 and not offered(MULTINODE):
        yield (
            f"{path}.multinode: jobs on several nodes are not run by the nodes of this cluster "
            "yet; leave `multinode` out to run on one node"
        )
    if job.network is not None and (
        job.network.isolated or job.network.expose_tcp or job.network.expose_udp
    ):
        yield (
            f"{path}.network: networks of their own are not given to jobs yet; "
            "leave `network` out to run on the network of the node"
        )


def _program(path: str, program: Program) -> Iterator[str]:
    if program.image is not None:
        yield (
            f"{path}.image: container images are not run yet; "
            "leave `image` out to run the command directly on a node"
        )
        yield from _secrets(f"{path}.image", program.image)
    for name, value in program.env.items():
        if value.startswith("secret://"):
            yield f"{path}.env: secrets are not resolved yet; give {name} a plain value"
    cpu = program.resource.cpu if program.resource else None
    if cpu is not None and cpu.sockets is not None:
        yield f"{path}.resource.cpu.sockets: sockets are not placed yet; leave `sockets` out"
    if cpu is not None and cpu.threads:
        yield (
            f"{path}.resource.cpu.threads: hardware threads are not counted yet; "
            "leave `threads` out, and ask for cores"
        )
