"""What is reported of a process group that ended."""

import signal
from typing import Literal, cast

from logyard_domain.commands import Ended
from logyard_domain.quantities import format_size
from logyard_engine.substrate.cgroup import Usage
from logyard_engine.substrate.keeping import ChildEnd

EXIT_OUT_OF_MEMORY = 137

_Cause = Literal["timeout", "canceled", "preempted", "lost"]


def of_child(allocation: str, end: ChildEnd, usage: Usage | None, memory: int) -> Ended:
    """The report of an end. `memory` is the limit in bytes.

    The outcome is the cause of the stop if there was one, else told by the exit code. `exit_code`
    is 128 + `signal` for a job that a signal killed, 137 for one that used up its memory.
    """
    code, error, number = end.exit_code, end.error, end.signal
    outcome = cast(_Cause, end.cause) if end.cause else ("finished" if code == 0 else "failed")
    if outcome == "failed" and usage is not None and usage.oom_kills:
        code, number = EXIT_OUT_OF_MEMORY, int(signal.SIGKILL)
        error = f"out of memory: the limit is {format_size(memory)}"
    elif outcome == "failed" and number:
        error = error or f"killed by {_name(number)}"
    return Ended(
        allocation=allocation,
        outcome=outcome,
        exit_code=code,
        signal=number or None,
        run_ms=end.run_ms,
        cpu_ms=usage.cpu_ms if usage is not None and usage.cpu_ms else end.cpu_ms,
        peak_bytes=usage.peak_bytes if usage is not None and usage.peak_bytes else end.peak_bytes,
        error=error,
        started_at=end.started_at,
    )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
