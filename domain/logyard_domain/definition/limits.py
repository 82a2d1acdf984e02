"""Every limit of a workflow file, by name. At a limit the answer is a refusal."""

from typing import Final

TEXT_BYTES_MAX: Final = 4 * 1024 * 1024
"""Length of a workflow file, inline files included."""

VALUES_MAX: Final = 200_000
"""Values in a file, each use of a YAML alias counted anew."""

NESTING_MAX: Final = 64
"""Levels of nesting in the text."""

PROBLEMS_MAX: Final = 100
"""Problems of one file that are listed."""

STAGES_MAX: Final = 10_000
"""Jobs and services of one workflow together."""

NAME_LENGTH_MAX: Final = 63
"""Characters in the name of a job, service, port or endpoint: a DNS label."""

PATH_LENGTH_MAX: Final = 4096
"""Characters in a path, as on Linux."""

CORES_MAX: Final = 1_000_000
NODES_MAX: Final = 100_000
PROCESSES_PER_NODE_MAX: Final = 100_000
DEVICES_MAX: Final = 100_000

TASK_ID_MAX: Final = 2**31 - 1
TASKS_MAX: Final = 1_000_000
"""Tasks of one array."""

CONCURRENCY_MAX: Final = 200
"""Tasks of one array in flight at once."""

RETRY_ATTEMPTS_MAX: Final = 100
BACKOFF_FACTOR_MAX: Final = 100.0
PORT_MAX: Final = 65_535
SECONDS_MAX: Final = 10 * 366 * 86_400
PROBE_THRESHOLD_MAX: Final = 100_000
REPLICAS_MAX: Final = 10_000
DRAIN_PERIOD_S_MAX: Final = 600
