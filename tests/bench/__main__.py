"""Run all benchmarks, or those that are named: `python -m tests.bench [--only a,b]`."""

import argparse
import sys

import msgspec

from tests.bench import asking, engine, log, scheduling, server
from tests.bench.figures import Bench, Figure, tell

BENCHES: dict[str, Bench] = {
    **log.BENCHES,
    **engine.BENCHES,
    **server.BENCHES,
    **scheduling.BENCHES,
    **asking.BENCHES,
}


def main() -> int:
    """0 when every target was met, else 1."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", default="", help=f"comma-separated: {', '.join(BENCHES)}")
    only = [name for name in parser.parse_args().only.split(",") if name]
    if unknown := [name for name in only if name not in BENCHES]:
        parser.error(f"no bench is called {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    figures: list[Figure] = []
    for name in only or BENCHES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        for figure in BENCHES[name]():
            figures.append(figure)
            print(msgspec.json.encode(figure).decode(), flush=True)
    tell(figures)
    return 0 if all(figure.met is not False for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
