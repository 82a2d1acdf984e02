"""Progress on the screen: redrawn in place on a terminal, a line for each change elsewhere."""

from typing import TYPE_CHECKING

from logyard_api.cli.output import plain, say
from logyard_api.cli.units import now_ms, span
from logyard_api.cli.workflow.progress import Progress, Stage

if TYPE_CHECKING:
    from rich.live import Live

BAR_CHARS = 28
LINES_MAX = 30


def lines(progress: Progress, holds: dict[str, str]) -> list[str]:
    """One line for each stage; `holds` says for stages why they wait."""
    shown = list(progress.stages.values())
    width = max((len(stage.name) for stage in shown), default=0)
    text = [f"  {stage.name:<{width}}  {_standing(progress, stage, holds)}" for stage in shown]
    if len(text) > LINES_MAX:
        over = [line for stage, line in zip(shown, text, strict=True) if stage.state != "done"]
        text = over[:LINES_MAX]
        text.append(f"  and {len(shown) - len(text)} more stages, done ones among them")
    return text


class Screen:
    """Shows a workflow's progress on stderr until it is closed."""

    def __init__(self) -> None:
        self._live: Live | None = None if plain() else _live()
        self._states: dict[str, str] = {}

    def show(self, progress: Progress, holds: dict[str, str]) -> None:
        """Bring the screen up to date."""
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text("\n".join(lines(progress, holds))), refresh=True)
            return
        for stage in progress.stages.values():
            state = stage.state
            if state == "queued" and not holds.get(stage.name):
                continue
            # Of a task array every quarter that is done is worth a line.
            now = f"{state} {holds.get(stage.name, '')} {4 * stage.done // stage.total}"
            if state == "running":
                now = f"{state} {4 * stage.done // stage.total}"
            if state != "waits" and self._states.get(stage.name) != now:
                self._states[stage.name] = now
                say(f"  {stage.name}  {_standing(progress, stage, holds)}")

    def close(self) -> None:
        """Leave what is shown on the screen and give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _live() -> "Live":
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(stderr=True, highlight=False), auto_refresh=False)
    live.start()
    return live


def _standing(progress: Progress, stage: Stage, holds: dict[str, str]) -> str:
    match stage.state:
        case "waits":
            open_needs = [
                name
                for name in stage.needs
                if name in progress.stages and progress.stages[name].state != "done"
            ]
            return f"waits for {', '.join(open_needs)}" if open_needs else "waits"
        case "queued":
            return f"queued    {_many_queued(stage)}{_reason(holds.get(stage.name))}".rstrip()
        case "running":
            return _running(stage, holds.get(stage.name, ""))
        case "done":
            ran = span(stage.ended_ms - stage.began_ms) if stage.began_ms else ""
            ranks = f"  {stage.done}/{stage.total}" if stage.total > 1 else ""
            return f"done      {ran}{ranks}".rstrip()
        case "failed":
            return f"failed    {stage.error}".rstrip()
        case "canceled":
            return f"canceled  {stage.error}".rstrip()


def _running(stage: Stage, hold: str) -> str:
    if stage.total == 1:
        return f"running   {span(now_ms() - stage.began_ms)}"
    full = BAR_CHARS * stage.done // stage.total
    bar = "#" * full + "-" * (BAR_CHARS - full)
    width = len(str(stage.total))
    parts = [f"{len(stage.running)} running"]
    if stage.waiting:
        parts.append(f"{stage.waiting} waiting{_reason(hold, ' ')}")
    if stage.failed:
        parts.append(f"{stage.failed} failed")
    return f"[{bar}]  {stage.done:>{width}}/{stage.total}   {', '.join(parts)}"


def _many_queued(stage: Stage) -> str:
    return f"{stage.total} ranks" if stage.total > 1 else ""


def _reason(hold: str | None, before: str = "") -> str:
    return f"{before}({hold})" if hold else ""
