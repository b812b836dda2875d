"""What a topic's settings mean to its logs, as plain values. Times are milliseconds, sizes bytes."""

from __future__ import annotations

from dataclasses import dataclass

WEEK_MS = 7 * 24 * 3600 * 1000
DAY_MS = 24 * 3600 * 1000
HOUR_MS = 3600 * 1000


@dataclass(frozen=True)
class LogSettings:
    """Kafka's defaults. -1 for a retention means for ever."""

    segment_bytes: int = 2**30
    segment_ms: int = WEEK_MS
    retention_ms: int = WEEK_MS
    retention_bytes: int = -1
    delete: bool = True
    compact: bool = False
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    delete_retention_ms: int = DAY_MS
    log_append_time: bool = False
    timestamp_before_max_ms: int = 2**63 - 1
    timestamp_after_max_ms: int = HOUR_MS
    max_message_bytes: int = 1048588
    producer_expiration_ms: int = DAY_MS
