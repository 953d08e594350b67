"""What is counted for Prometheus: by route template and status only, never by who or what."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)


class ServiceMetrics:
    """Counters of one service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._answers = Counter("goodfence_answers", "Answers.", ["route", "status"], registry=self._registry)
        self._seconds = Histogram(
            "goodfence_seconds", "Time of an answer.", ["route"], buckets=_BUCKETS, registry=self._registry
        )
        self._ready = Gauge("goodfence_ready", "1 if a model is active.", registry=self._registry)
        self._kept: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        kept = self._kept.get((route, status))
        if kept is None:
            kept = self._kept[route, status] = (self._answers.labels(route, status), self._seconds.labels(route))
        kept[0].inc()
        kept[1].observe(seconds)

    def text(self, *, ready: bool) -> bytes:
        """Return the figures as Prometheus reads them."""
        self._ready.set(int(ready))
        return generate_latest(self._registry)
