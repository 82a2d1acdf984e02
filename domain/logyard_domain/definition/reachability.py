"""How a service is reached, found ready, scaled and told of others."""

from typing import Annotated, Literal

from msgspec import field

from logyard_domain.definition import limits
from logyard_domain.definition.notation import (
    AbsolutePath,
    AnnotationKey,
    HeaderName,
    Label,
    Line,
    Newer,
    Part,
    Port,
    Seconds,
    SecondsOrNone,
    UrlPath,
    Whole,
)

Threshold = Annotated[int, Whole(1, limits.PROBE_THRESHOLD_MAX)]


class ServicePort(Part, frozen=True, kw_only=True):
    """A port of the container.

    name: what endpoints call it
    port: its number
    protocol: `tcp` or `udp`
    """

    name: Label
    port: Port
    protocol: Literal["tcp", "udp"] = "tcp"


class Endpoint(Part, frozen=True, kw_only=True):
    """A way in from outside.

    name: what it is called in addresses
    port_name: the port that it leads to
    protocol: what is spoken
    type: whether the address has a subdomain or a path of its own
    scope: who may use it
    per_replica: one address for each replica
    annotations: for whoever serves the address
    """

    name: Label
    port_name: Label
    protocol: Literal["http", "https", "grpc", "grpcs", "tcp", "tls"] = "http"
    type: Literal["subdomain", "path"] = "subdomain"
    scope: Literal["user", "group", "organization", "public"] = "group"
    per_replica: Annotated[bool, Newer()] = False
    annotations: Annotated[dict[AnnotationKey, str], Newer()] = field(default={})


class ServiceNetwork(Part, frozen=True, kw_only=True):
    """The network of a service.

    ports: ports of the container
    endpoints: ways in from outside
    host: whether it serves on the network of the host
    """

    ports: tuple[ServicePort, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    host: bool = False


class ExecCheck(Part, frozen=True, kw_only=True, tag="exec", tag_field="check"):
    """Ready when a command in the container exits with 0.

    command: the program and its arguments
    """

    command: tuple[str, ...]


class HttpHeader(Part, frozen=True, kw_only=True):
    """One header of a request.

    name: the header
    value: its value
    """

    name: HeaderName
    value: str


class HttpCheck(Part, frozen=True, kw_only=True, tag="http-get", tag_field="check"):
    """Ready when a GET is answered with a status from 200 to 399.

    path: what is asked for
    port: the port of the container
    scheme: `HTTP` or `HTTPS`
    http_headers: headers of the request
    """

    path: UrlPath = "/"
    port: Port
    scheme: Literal["HTTP", "HTTPS"] = "HTTP"
    http_headers: tuple[HttpHeader, ...] = ()


class TcpCheck(Part, frozen=True, kw_only=True, tag="tcp-socket", tag_field="check"):
    """Ready when a connection is accepted.

    port: the port of the container
    """

    port: Port


class GrpcCheck(Part, frozen=True, kw_only=True, tag="grpc", tag_field="check"):
    """Ready when the gRPC health service says so.

    port: the port of the container
    service: the name to ask for
    """

    port: Port
    service: str | None = None


class ReadinessProbe(Part, frozen=True, kw_only=True):
    """How to find out that a service is ready; with the meaning that it has in Kubernetes.

    check: exactly one of `exec`, `http-get`, `tcp-socket` and `grpc`
    initial_delay_seconds: wait before the first check
    period_seconds: time between checks
    timeout_seconds: how long one check may take
    success_threshold: checks in a row that make it ready
    failure_threshold: checks in a row that make it fail
    """

    check: ExecCheck | HttpCheck | TcpCheck | GrpcCheck
    initial_delay_seconds: SecondsOrNone = 0
    period_seconds: Seconds = 10
    timeout_seconds: Seconds = 1
    success_threshold: Threshold = 1
    failure_threshold: Threshold = 3


class Replicas(Part, frozen=True, kw_only=True):
    """How many replicas there may be.

    min: the least; 0 means that it can be scaled to nothing
    max: the most
    """

    min: Annotated[int, Whole(0, limits.REPLICAS_MAX)]
    max: Annotated[int, Whole(1, limits.REPLICAS_MAX)]


class Metrics(Part, frozen=True, kw_only=True):
    """Where the series for the queries come from.

    enabled: whether they are fetched
    path: what is asked for, without credentials
    port: the port of the container
    interval_s: seconds between two requests
    includes: the series to keep; all where nothing is said
    """

    enabled: bool = False
    path: UrlPath | None = None
    port: Port | None = None
    interval_s: Seconds | None = field(default=None, name="interval")
    includes: tuple[str, ...] = ()


class Trigger(Part, frozen=True, kw_only=True):
    """What makes a service grow.

    metrics_query: PromQL; true when it is not zero
    cooldown_period_s: seconds until it may act again
    services: other services to scale instead of this one
    """

    metrics_query: Line
    cooldown_period_s: SecondsOrNone | None = field(default=None, name="cooldown-period")
    services: tuple[Label, ...] = ()


class ScaleUp(Part, frozen=True, kw_only=True):
    """When replicas are added.

    triggers: any of them suffices
    """

    triggers: tuple[Trigger, ...] = ()


class ScaleDown(Part, frozen=True, kw_only=True):
    """When a replica is taken away.

    metrics_query: PromQL; true when it is not zero
    cooldown_period_s: seconds until it may act again
    drain_period_s: seconds that a replica gets to finish its work
    """

    metrics_query: Line
    cooldown_period_s: SecondsOrNone | None = field(default=None, name="cooldown-period")
    drain_period_s: Annotated[
        Annotated[int, Whole(0, limits.DRAIN_PERIOD_S_MAX)] | None, Newer()
    ] = field(default=None, name="drain-period")


class Autoscaler(Part, frozen=True, kw_only=True):
    """How many replicas of a service there are.

    replicas: the least and the most
    metrics: where the series come from
    scale_up: when replicas are added
    scale_down: when a replica is taken away
    """

    replicas: Replicas | None = None
    metrics: Metrics | None = None
    scale_up: ScaleUp | None = None
    scale_down: ScaleDown | None = None


class DynamicConfig(Part, frozen=True, kw_only=True):
    """A file in the container that is written anew when addresses change.

    path: the file
    services: the services whose addresses the script is given
    script: its output is the content of the file
    """

    path: AbsolutePath
    services: tuple[Label, ...] = ()
    script: Line
