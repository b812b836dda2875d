"""What the bending proxy costs: the same questions with and without it, side by side, as ratios.

    python -m benchmarks.bending_proxy [--backend in-house] [--rounds 400]

One client asks for the latest offset, in turn directly, through a proxy that bends nothing, and through one that
decodes, alters and encodes each answer. The proxy runs as `offsets mutants` runs it, in a thread beside the client.
Wall-clock times depend on what else the machine does; the turns share that, so the ratios are the numbers to keep.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack

from tabulate import tabulate

from backends.presets import prepare
from backends.registry import choose
from conformance.batches import Record, encode_batch
from conformance.cluster import Cluster, Question
from conformance.specs import LATEST, T
from mutants.bending import UNBENT, but
from mutants.bugs import latest
from mutants.proxy import ProxyThread

TOPIC = "benchmark"
WARM_UP = 50
"""Round trips before the clock starts: connections, leaders and the codec's caches."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="in-house", metavar="NAME[@VERSION]")
    parser.add_argument("--rounds", type=int, default=400, help="round trips each way")
    options = parser.parse_args()
    bending = latest("one-more", "", lambda _, told: but(told, offset=told.offset + 1))
    with ExitStack() as stack:
        broker = stack.enter_context(prepare(choose(options.backend)))
        proxies = stack.enter_context(ProxyThread())
        unbent = stack.enter_context(proxies.open(broker.bootstrap, UNBENT))
        bent = stack.enter_context(proxies.open(broker.bootstrap, bending))
        addresses = {"direct": broker.bootstrap, "through the proxy": unbent.address, "bent by it": bent.address}
        clusters = {way: stack.enter_context(Cluster(address)) for way, address in addresses.items()}
        clusters["direct"].create_topic(TOPIC, config={"retention.ms": "-1"})
        clusters["direct"].produce(TOPIC, 0, encode_batch([Record(T)]))
        times = measure(clusters, options.rounds)
    print(show(times))


def measure(clusters: dict[str, Cluster], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round trip, taken in turns."""
    times: dict[str, list[float]] = {way: [] for way in clusters}
    for number in range(WARM_UP + rounds):
        for way, cluster in clusters.items():
            started = time.perf_counter()
            cluster.list_offsets(Question(TOPIC, 0, LATEST))
            if number >= WARM_UP:
                times[way].append((time.perf_counter() - started) * 1000)
    return times


def show(times: dict[str, list[float]]) -> str:
    direct = statistics.median(times["direct"])
    rows = []
    for way, taken in times.items():
        middle = statistics.median(taken)
        rows.append([way, f"{middle:.3f}", f"{statistics.quantiles(taken, n=10)[-1]:.3f}", f"{middle / direct:.2f}"])
    headings = ["ListOffsets", "median, ms", "nine in ten within, ms", "ratio of medians"]
    return tabulate(rows, headings, disable_numparse=True)


if __name__ == "__main__":
    main()
