"""Volumes, how they are addressed, and what is copied into and out of them."""

from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import field

from logyard_domain.definition.notation import (
    AbsolutePath,
    AnnotationKey,
    Bytes,
    Part,
    ResourceName,
    VolumeReference,
)
from logyard_domain.definition.policies import Policy
from logyard_domain.definition.uris import Uri

EPHEMERAL: Final = "ephemeral"
PERSISTENT: Final = "persistent"


class Transfer(Part, frozen=True, kw_only=True):
    """One copy, into a volume before its jobs or out of it after them.

    source: where the data comes from
    destination: where the data goes
    policy: limits on this transfer
    """

    source: Uri
    destination: Uri
    policy: Policy | None = None


class Volume(Part, frozen=True, kw_only=True):
    """Storage that jobs and services mount; an empty one is a new ephemeral volume.

    use: a provisioner by name, or `ephemeral` or `persistent` to let one be chosen
    name: an existing persistent volume
    size_bytes: capacity to ask for, for instance `10GB`
    annotations: what the provisioner must be annotated with, key and value exactly
    reference: the old address, `volume://<scope>/<class>[/<name>]`
    type: deprecated; `EPHEMERAL`, or `HOST` with `path`
    path: deprecated; folder of the host for `type: HOST`
    ingress: what is copied in before jobs start
    egress: what is copied out after jobs have finished
    """

    use: ResourceName | None = None
    name: ResourceName | None = None
    size_bytes: Bytes | None = field(default=None, name="size")
    annotations: dict[AnnotationKey, str] = field(default={})
    reference: VolumeReference | None = None
    type: Literal["EPHEMERAL", "HOST"] | None = None
    path: AbsolutePath | None = None
    ingress: tuple[Transfer, ...] = ()
    egress: tuple[Transfer, ...] = ()

    @property
    def is_ephemeral(self) -> bool:
        """Whether the volume lives and ends with the workflow, on whichever provisioner fits."""
        plain = addressed(self)
        return (
            plain.use in {None, EPHEMERAL}
            and plain.name is None
            and plain.reference is None
            and plain.type is None
        )


class Mount(Part, frozen=True, kw_only=True):
    """A volume at a path.

    volume: key of the volume under `volumes`
    """

    volume: str


class Reference(NamedTuple):
    """The three parts of `volume://<scope>/<class>[/<name>]`."""

    scope: str
    storage_class: str
    name: str | None


def parsed_reference(text: str) -> Reference:
    """The parts of a well-formed reference."""
    scope, storage_class, *name = text.removeprefix("volume://").split("/")
    return Reference(scope, storage_class, name[0] if name else None)


def addressed(volume: Volume) -> Volume:
    """The same volume without the old forms of its address, as far as `use` and `name` can say it.

    A reference of another class than `ephemeral` that has no name stays as it is: only its class
    knows which volume is meant.
    """
    if volume.reference is not None:
        _, storage_class, name = parsed_reference(volume.reference)
        if storage_class == EPHEMERAL:
            return msgspec.structs.replace(volume, use=EPHEMERAL, name=None, reference=None)
        if name is not None:
            return msgspec.structs.replace(volume, use=storage_class, name=name, reference=None)
    elif volume.type == "EPHEMERAL":
        return msgspec.structs.replace(volume, use=EPHEMERAL, name=None, type=None, path=None)
    return volume
