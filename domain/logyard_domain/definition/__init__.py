"""What a workflow file says, as frozen values, and what follows from it."""

from logyard_domain.definition.graph import cycles, dependencies, ordered
from logyard_domain.definition.policies import Policy, Retry
from logyard_domain.definition.programs import (
    Dependency,
    Job,
    JobNetwork,
    Multinode,
    Program,
    Service,
    TaskArray,
)
from logyard_domain.definition.reachability import (
    Autoscaler,
    DynamicConfig,
    Endpoint,
    ExecCheck,
    GrpcCheck,
    HttpCheck,
    HttpHeader,
    Metrics,
    ReadinessProbe,
    Replicas,
    ScaleDown,
    ScaleUp,
    ServiceNetwork,
    ServicePort,
    TcpCheck,
    Trigger,
)
from logyard_domain.definition.resolution import injected_files, resolved
from logyard_domain.definition.resources import Cpu, Memory, Resource
from logyard_domain.definition.uris import Uri
from logyard_domain.definition.volumes import Mount, Transfer, Volume
from logyard_domain.definition.workflow import Defaults, JobDefaults, ServiceDefaults, Workflow

__all__ = [
    "Autoscaler",
    "Cpu",
    "Defaults",
    "Dependency",
    "DynamicConfig",
    "Endpoint",
    "ExecCheck",
    "GrpcCheck",
    "HttpCheck",
    "HttpHeader",
    "Job",
    "JobDefaults",
    "JobNetwork",
    "Memory",
    "Metrics",
    "Mount",
    "Multinode",
    "Policy",
    "Program",
    "ReadinessProbe",
    "Replicas",
    "Resource",
    "Retry",
    "ScaleDown",
    "ScaleUp",
    "Service",
    "ServiceDefaults",
    "ServiceNetwork",
    "ServicePort",
    "TaskArray",
    "TcpCheck",
    "Transfer",
    "Trigger",
    "Uri",
    "Volume",
    "Workflow",
    "cycles",
    "dependencies",
    "injected_files",
    "ordered",
    "resolved",
]
