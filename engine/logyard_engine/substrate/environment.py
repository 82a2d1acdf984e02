"""The environment of a job, and `$NAME` in the arguments of its command."""

import getpass
import os
import re
from collections.abc import Mapping

from logyard_domain.work import Task
from logyard_engine.substrate.seats import Seat

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_NAME = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_NOT_IN_VARIABLES = re.compile(r"[^A-Z0-9]+")


def base_environment() -> dict[str, str]:
    """What every job of this node finds: nothing of the agent's own settings."""
    home = os.path.expanduser("~")
    return {
        "PATH": os.environ.get("PATH") or DEFAULT_PATH,
        "HOME": home if home.startswith("/") else "/",
        "LANG": os.environ.get("LANG") or "C.UTF-8",
        "USER": _user(),
    }


def task_environment(base: Mapping[str, str], task: Task) -> dict[str, str]:
    """What all ranks of a task share. The task's own entries win over the base, ours over both."""
    env = dict(base)
    for entry in task.env:
        name, _, value = entry.partition("=")
        env[name] = value
    env["FB_WORKFLOW_ID"] = task.workflow
    env["FB_JOB_NAME"] = task.stage
    env["LOGYARD_CORES"] = str(task.cores)
    return env


def device_environment(seat: Seat) -> dict[str, str]:
    """``LOGYARD_DEVICES_<NAME>`` for each kind of device; CUDA also has its own variable."""
    env: dict[str, str] = {}
    for name, indices in seat.devices.items():
        listed = ",".join(map(str, indices))
        env["LOGYARD_DEVICES_" + _NOT_IN_VARIABLES.sub("_", name.upper())] = listed
        if name == "nvidia.com/gpu":
            env["CUDA_VISIBLE_DEVICES"] = listed
    return env


def expanded(argument: str, env: Mapping[str, str]) -> str:
    """`argument` with ``$NAME`` and ``${NAME}`` replaced; names that `env` lacks stay as they
    are.
    """
    if "$" not in argument:
        return argument
    return _NAME.sub(lambda found: env.get(found[1] or found[2], found[0]), argument)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A user id without a name, as in many containers.
        return str(os.getuid())
