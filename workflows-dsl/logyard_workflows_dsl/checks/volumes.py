"""Volumes: one address each, and transfers that can be made."""

from collections.abc import Iterator

from logyard_domain.definition import Transfer, Uri, Volume, Workflow
from logyard_workflows_dsl.checks.findings import Finding
from logyard_workflows_dsl.checks.programs import file_findings, policy_findings
from logyard_workflows_dsl.problems import Segment

Path = tuple[Segment, ...]
_SOURCES = ("file", "http", "https", "ftp", "s3", "hf", "fb", "fuzzball")
_DESTINATIONS = ("results", "s3", "fb", "fuzzball")


def findings(workflow: Workflow) -> Iterator[Finding]:
    """Addresses that contradict themselves, ends of transfers that are not there."""
    for key, volume in workflow.volumes.items():
        path: Path = ("volumes", key)
        yield from _address(path, key, volume)
        for index, transfer in enumerate(volume.ingress):
            yield from _ingress((*path, "ingress", index), transfer, workflow)
        for index, transfer in enumerate(volume.egress):
            yield from _egress((*path, "egress", index), transfer)


def _address(path: Path, key: str, volume: Volume) -> Iterator[Finding]:
    if volume.type is not None:
        yield from _old_address(path, volume)
    elif volume.path is not None:
        yield Finding((*path, "path"), "only with `type: HOST`; mounts say where a volume is seen")
    if volume.reference is not None:
        if volume.use is not None:
            yield Finding((*path, "use"), "there is a `reference`, too; keep one")
        if volume.name == key:
            yield Finding(
                (*path, "name"),
                "ignored, since `reference` says which volume it is; leave it out",
                doubtful=True,
            )
        elif volume.name is not None:
            yield Finding(
                (*path, "name"),
                "there is a `reference`, too; keep it, or `name` with `use: persistent`",
            )
    elif volume.use == "persistent" and volume.name is None:
        yield Finding((*path, "use"), "persistent, but which? add the volume's `name`", misses=path)
    elif volume.use == "ephemeral" and volume.name is not None:
        yield Finding(
            (*path, "name"), "an ephemeral volume has no name; leave it out, or `use: persistent`"
        )


def _old_address(path: Path, volume: Volume) -> Iterator[Finding]:
    others = {"reference": volume.reference, "use": volume.use, "name": volume.name}
    for key, value in others.items():
        if value is not None:
            yield Finding((*path, key), "there is a `type`, too; leave `type` and `path` out")
    if volume.type == "HOST" and volume.path is None:
        yield Finding((*path, "type"), "HOST, but which folder? add its `path`", misses=path)
    elif volume.type == "EPHEMERAL" and volume.path is not None:
        yield Finding((*path, "path"), "an ephemeral volume has no path on the host; leave it out")
    yield Finding((*path, "type"), "deprecated; `use` and `name` took its place", doubtful=True)


def _ingress(path: Path, transfer: Transfer, workflow: Workflow) -> Iterator[Finding]:
    source = (*path, "source", "uri")
    if transfer.source.scheme not in _SOURCES:
        yield Finding(source, _scheme(transfer.source, "fetched from", _SOURCES))
    elif transfer.source.scheme == "file":
        yield from file_findings(source, transfer.source.uri, workflow)
    yield from _inside((*path, "destination", "uri"), transfer.destination)
    yield from policy_findings((*path, "policy"), transfer.policy)


def _egress(path: Path, transfer: Transfer) -> Iterator[Finding]:
    destination = (*path, "destination", "uri")
    yield from _inside((*path, "source", "uri"), transfer.source)
    if transfer.destination.scheme not in _DESTINATIONS:
        yield Finding(destination, _scheme(transfer.destination, "sent to", _DESTINATIONS))
    elif transfer.destination.scheme == "results" and not _is_within(transfer.destination.rest):
        yield Finding(
            destination,
            "a path within the results folder, without `..`; for instance results://out.png",
        )
    yield from policy_findings((*path, "policy"), transfer.policy)


def _inside(path: Path, uri: Uri) -> Iterator[Finding]:
    if uri.scheme != "file" or not _is_within(uri.rest):
        yield Finding(
            path,
            "a path within the volume is wanted here, without `..`; for instance file://data/in.csv",
        )


def _is_within(rest: str) -> bool:
    return bool(rest) and ".." not in rest.split("/")


def _scheme(uri: Uri, what: str, schemes: tuple[str, ...]) -> str:
    there = ", ".join(f"{scheme}://" for scheme in schemes)
    return f"data is not {what} {uri.scheme}://; there are {there}"
