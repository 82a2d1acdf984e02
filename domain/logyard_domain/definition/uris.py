"""A resource to fetch or store: a container image, or one end of a transfer."""

from typing import Literal

from msgspec import field

from logyard_domain.definition.notation import Link, Part, SecondsOrNone, SecretReference


class Uri(Part, frozen=True, kw_only=True):
    """A resource, and what is needed to reach it.

    uri: where it is, for instance `docker://alpine:3.21` or `s3://bucket/key`
    secret: the secret to reach it with, `secret://<scope>/<NAME>`
    decryption_secret: the secret that opens an encrypted image
    secrets: the old form of `secret`: what each value is for, and a template of it
    cache: whether a fetched object is kept: `once`, `changed` (looked up again) or `never`
    cache_ttl_s: seconds that a kept object may serve; 7 days where nothing is said
    """

    uri: Link
    secret: SecretReference | None = None
    decryption_secret: SecretReference | None = field(default=None, name="decryptionSecret")
    secrets: dict[str, str] = field(default={})
    cache: Literal["once", "changed", "never"] | None = None
    cache_ttl_s: SecondsOrNone | None = field(default=None, name="cache-ttl")

    @property
    def scheme(self) -> str:
        """`docker` in `docker://alpine`, in small letters."""
        return self.uri.partition("://")[0].lower()

    @property
    def rest(self) -> str:
        """What follows `://`, for `file://` and `results://` without a leading slash."""
        rest = self.uri.partition("://")[2]
        return rest.lstrip("/") if self.scheme in {"file", "results"} else rest
