"""A progress bar for long work without a server: on a terminal only, and nowhere else."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from logyard_api.cli import output


@contextmanager
def bar(what: str, total: int, counted: bool = True) -> Generator[Callable[[int], None] | None]:
    """What hears how much of `total` is done; None where nobody looks.

    With `counted` the numbers are shown as well: leave it out where they say nothing to people.
    """
    if output.plain():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (what, BarColumn(), *((MofNCompleteColumn(),) if counted else ()))
    with Progress(
        *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.update(task, completed=done)
