"""What the broker counts, in Prometheus' text form. Counting is always on, because it is cheap; showing is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Metrics:
    """Counters since the start."""

    requests: Counter[str] = field(default_factory=Counter)
    request_seconds: Counter[str] = field(default_factory=Counter)
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

    def by(label: str, counts: Counter[str]) -> list[tuple[str, float]]:
        return [(f'{{{label}="{name}"}}', counts[name]) for name in sorted(counts)]

    family("broker_requests_total", "counter", "Requests answered.", by("api", metrics.requests))
    family(
        "broker_request_seconds_total", "counter", "Time from a whole request to its answer, waits included.",
        by("api", metrics.request_seconds),
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
