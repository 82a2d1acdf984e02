"""`logyard log`: the log itself, read where it lies, also while a server appends to it."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import click

from logyard_api.cli import output, sentences
from logyard_api.cli.outcomes import USAGE, Trouble
from logyard_api.cli.places import data_folder
from logyard_api.cli.units import count

if TYPE_CHECKING:
    from logyard_engine.log.log import LogReader

F = TypeVar("F", bound=Callable[..., Any])
_CLUSTER = re.compile(rb'\{"position":\d+,"at":\d+,"cluster":("(?:[^"\\]|\\.)*")')


@click.group()
def log() -> None:
    """Read, verify, export and import the log of events itself.

    These commands ask no server: they read the log in the data folder, or where --log says.
    """


def _placed(function: F) -> F:
    function = click.option(
        "--log", "url", metavar="URL", help="The log: a file, or postgresql://..."
    )(function)
    return click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        help="Data folder of the server (also LOGYARD_DATA).",
    )(function)


@log.command()
@_placed
@click.option("--after", type=click.IntRange(min=0), default=0, help="Begin after this position.")
@click.option("--upto", type=click.IntRange(min=1), help="End with this position.")
@click.option("--tail", type=click.IntRange(min=1), help="The last N records.")
@click.option("--json", "as_json", is_flag=True, help="Each record whole, one a line.")
def show(
    data: Path | None,
    url: str | None,
    after: int,
    upto: int | None,
    tail: int | None,
    as_json: bool,
) -> None:
    """Print records: time, position, what it is about, what happened; with --json as stored."""
    from logyard_domain.codec import Damaged

    stored = sentences.Stored()
    with _reading(data, url) as reader:
        if tail is not None:
            after = max(after, reader.position - tail)
        for position, state in reader.read_states(after, upto):
            if as_json:
                click.echo(b'{"position":%d,%b' % (position, state[1:]))
                continue
            try:
                output.answer(sentences.line(stored.event(position, state), workflows=True))
            except Damaged as trouble:
                raise Trouble(str(trouble)) from None


@log.command()
@_placed
@click.option(
    "--expect",
    metavar="POSITION:CHAIN",
    help="A record known from elsewhere, which must be there: so a cut-off end is found too.",
)
@click.option("--json", "as_json", is_flag=True, help="The whole answer as JSON.")
def verify(data: Path | None, url: str | None, expect: str | None, as_json: bool) -> None:
    """Check that no record was changed, removed, inserted or moved since it was written.

    Exit code 1, with the position of the first wrong record, when one was.
    """
    from logyard_domain.codec import Damaged
    from logyard_engine.log.verify import verify as verified

    head = _head(expect) if expect else None
    with _reading(data, url) as reader:
        try:
            found = verified(reader.read_states(), _progress("checked"), head=head)
        except Damaged as trouble:
            if as_json:
                output.answer_json(
                    {"holds": False, "position": trouble.position, "what": trouble.what}
                )
                raise click.exceptions.Exit(1) from None
            raise Trouble(
                f"the log does not hold: position {count(trouble.position)}: {trouble.what}"
            ) from None
        cluster = reader.cluster
    if as_json:
        output.answer_json(
            {
                "holds": True,
                "cluster": cluster,
                "records": found.count,
                "position": found.position,
                "chain": found.chain,
            }
        )
        return
    output.answer(f"the log holds: {count(found.count)} records of cluster {cluster}, none changed")
    output.answer(f"keep this to check it later: --expect {found.position}:{found.chain}")


@log.command("export")
@_placed
@click.option("--after", type=click.IntRange(min=0), default=0, help="Begin after this position.")
@click.option("--upto", type=click.IntRange(min=1), help="End with this position.")
@click.argument("file", default="-")
def export_(data: Path | None, url: str | None, after: int, upto: int | None, file: str) -> None:
    """Write the records to FILE (`-`: stdout) as JSON lines, byte for byte as they were written."""
    from logyard_engine.log.transfer import export_log

    with _reading(data, url) as reader, click.open_file(file, "wb", atomic=file != "-") as out:
        sink = cast(BinaryIO, out)
        number = export_log(reader, sink, _progress("exported"), after=after, upto=upto)
    output.say(f"{count(number)} records exported")


@log.command("import")
@_placed
@click.argument("file", default="-")
def import_(data: Path | None, url: str | None, file: str) -> None:
    """Fill an empty log from FILE (`-`: stdin), after checking all of it.

    No server may run on it meanwhile.
    """
    from logyard_domain.codec import Damaged, UnknownEvent
    from logyard_engine.log.lock import FolderHeld
    from logyard_engine.log.log import LogTrouble
    from logyard_engine.log.opening import open_log
    from logyard_engine.log.transfer import import_log

    place = _place(data, url)
    with _seekable(file) as source:
        cluster = _cluster(source, file)
        try:
            with _alone(place), closing(open_log(place, cluster)) as target:
                done = import_log(source, target, _progress("imported"))
        except (LogTrouble, Damaged, UnknownEvent, FolderHeld) as trouble:
            raise Trouble(f"nothing was imported: {trouble}") from None
    output.answer(f"{count(done.count)} records of cluster {cluster} imported into {place}")


def _place(data: Path | None, url: str | None) -> Path | str:
    """Where the log is: --log, --data, LOGYARD_LOG, LOGYARD_DATA, the default folder."""
    if url and data:
        raise Trouble("--log and --data are both given; keep one", USAGE)
    told = url or ("" if data else os.environ.get("LOGYARD_LOG", ""))
    return told or data or data_folder()


@contextmanager
def _reading(data: Path | None, url: str | None) -> "Generator[LogReader]":
    from logyard_engine.log.log import LogTrouble
    from logyard_engine.log.opening import open_for_reading

    try:
        with closing(open_for_reading(_place(data, url))) as reader:
            yield reader
    except LogTrouble as trouble:
        raise Trouble(str(trouble)) from None


def _alone(place: Path | str) -> AbstractContextManager[Any]:
    """The right to serve a data folder, so that no server comes in between."""
    from logyard_engine.log.lock import FolderLock

    if not isinstance(place, Path):
        return nullcontext()
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    return FolderLock(place)


def _head(text: str) -> tuple[int, str]:
    position, _, chain = text.partition(":")
    if not position.isdigit() or not chain:
        raise Trouble(
            f"--expect: {text!r} is no POSITION:CHAIN as an earlier check printed it", USAGE
        )
    return int(position), chain


def _progress(verb: str) -> Callable[[int], None] | None:
    if output.plain():
        return None
    return lambda position: click.echo(f"\r{count(position)} {verb} ", err=True, nl=False)


@contextmanager
def _seekable(file: str) -> Generator[BinaryIO]:
    if file != "-":
        try:
            with Path(file).open("rb") as source:
                yield source
        except FileNotFoundError:
            raise Trouble(f"{file}: there is no such file", USAGE) from None
        return
    # All of it is checked before anything is written, so it is read twice.
    with tempfile.TemporaryFile() as kept:
        while piece := sys.stdin.buffer.read(1 << 20):
            kept.write(piece)
        kept.seek(0)
        yield kept


def _cluster(source: BinaryIO, name: str) -> str:
    start = source.tell()
    found = _CLUSTER.match(source.readline())
    source.seek(start)
    if found is None:
        raise Trouble(f"{name}: line 1 is no exported record; nothing was imported", USAGE)
    return str(json.loads(found[1]))
