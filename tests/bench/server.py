"""throughput, latency, chain, submit, footprint: a real server with a real node."""

from tests.bench.figures import Bench

BENCHES: dict[str, Bench] = {}
