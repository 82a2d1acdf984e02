"""Appends to the log in its argument until it is killed; says each position and chain it holds."""

import sys

from logyard_engine.log.opening import open_log
from tests.log.entries import CLUSTER, some

if __name__ == "__main__":
    log = open_log(sys.argv[1], CLUSTER)
    print(log.position, log.chain, flush=True)
    size = 1
    while True:
        log.append(some(size, seed=log.position))
        print(log.position, log.chain, flush=True)
        size = size % 140 + 7
