"""What the broker counts, in Prometheus' text form. Counting is always on, because it is cheap; showing is not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Requests:
    """The requests of one API."""

    count: int = 0
    seconds: float = 0.0


@dataclass
class Metrics:
    """Counters since the start."""

    requests: defaultdict[str, Requests] = field(default_factory=lambda: defaultdict(Requests))
    bytes_in: int = 0
    bytes_out: int = 0
    accepted: int = 0
    closed: Counter[str] = field(default_factory=Counter)


def render(metrics: Metrics, gauges: dict[str, float]) -> str:
    """The page that Prometheus reads."""
    lines: list[str] = []

    def family(name: str, kind: str, about: str, samples: Iterable[tuple[str, float]]) -> None:
        lines.extend((f"# HELP {name} {about}", f"# TYPE {name} {kind}"))
        lines.extend(f"{name}{labels} {value:g}" if value % 1 else f"{name}{labels} {value:.0f}"
                     for labels, value in samples)  # fmt: skip

    def by(label: str, counts: Mapping[str, float]) -> list[tuple[str, float]]:
        return [(f'{{{label}="{name}"}}', counts[name]) for name in sorted(counts)]

    counts = {name: each.count for name, each in metrics.requests.items()}
    seconds = {name: each.seconds for name, each in metrics.requests.items()}
    family("broker_requests_total", "counter", "Requests answered.", by("api", counts))
    family(
        "broker_request_seconds_total", "counter", "Time from a whole request to its answer, waits included.",
        by("api", seconds),
    )  # fmt: skip
    family("broker_received_bytes_total", "counter", "Bytes of whole requests.", [("", metrics.bytes_in)])
    family("broker_sent_bytes_total", "counter", "Bytes of answers.", [("", metrics.bytes_out)])
    family("broker_connections_accepted_total", "counter", "Connections.", [("", metrics.accepted)])
    family(
        "broker_connections_closed_total", "counter", "Connections that the broker closed.",
        by("reason", metrics.closed),
    )  # fmt: skip
    for name, value in gauges.items():
        family(f"broker_{name}", "gauge", f"The {name.replace('_', ' ')} now.", [("", value)])
    return "\n".join(lines) + "\n"
