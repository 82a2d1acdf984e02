"""A process that writes a log for another one, which decides meanwhile what comes next.

It reads pieces of entries from its standard input, appends each to the log as a server would, and
answers an empty piece with the chain at its end. It ends with its input.
"""

import signal
import sys
from contextlib import closing
from typing import BinaryIO

import msgspec

from logyard_domain.records import Entry
from logyard_engine.log.log import LogTrouble
from logyard_engine.log.opening import open_log

LENGTH_BYTES = 4
"""Each piece begins with how many bytes follow, the highest byte first."""


def main(place: str, cluster: str, source: BinaryIO) -> int:
    """Write what comes from `source` to the log at `place`; the exit code."""
    decoder = msgspec.msgpack.Decoder(list[Entry])
    try:
        with closing(open_log(place, cluster)) as log:
            while header := source.read(LENGTH_BYTES):
                length = int.from_bytes(header, "big")
                if length:
                    log.append(decoder.decode(source.read(length)))
                else:
                    print(log.chain, flush=True)
    except LogTrouble as trouble:
        print(trouble, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    # Ctrl-C ends who gives the entries, and with it the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main(sys.argv[1], sys.argv[2], sys.stdin.buffer))
