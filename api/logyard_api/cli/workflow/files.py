"""Workflow files on the command line."""

import sys
from pathlib import Path

from logyard_api.cli.outcomes import USAGE, Trouble

FILE_BYTES_MAX = 16 * 1024 * 1024


def read(file: str) -> tuple[str, str]:
    """The text of `file` (``-``: of stdin), and how messages call it. Raises Trouble."""
    name = "stdin" if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        if len(data) > FILE_BYTES_MAX:
            raise Trouble(f"{name}: {len(data)} bytes; the most is {FILE_BYTES_MAX}", USAGE)
        return data.decode(), name
    except OSError as trouble:
        raise Trouble(f"{name}: {trouble.strerror}", USAGE) from trouble
    except UnicodeDecodeError as trouble:
        raise Trouble(f"{name}: this is no text in UTF-8 (byte {trouble.start})", USAGE) from None


def stem(file: str) -> str:
    """The name of a workflow that is given none: that of its file."""
    return "workflow" if file == "-" else Path(file).name.partition(".")[0] or "workflow"
