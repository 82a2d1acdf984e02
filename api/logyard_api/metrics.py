"""Prometheus metrics of this process, in a registry of their own."""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

Reading = tuple[dict[str, str], float]
"""Labels and a value."""


class Metrics:
    """Counts and times what happens; gauges read the state when they are asked for."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry(auto_describe=False)
        self._requests = Counter(
            "logyard_api_requests",
            "Requests by operation and HTTP status.",
            ("operation", "code"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "logyard_api_request_seconds",
            "Time until the last byte of an answer was sent.",
            ("operation",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._bound: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def request(self, operation: str, status: int, seconds: float) -> None:
        """A request was answered."""
        bound = self._bound.get((operation, status))
        if bound is None:
            bound = (
                self._requests.labels(operation, str(status)),
                self._seconds.labels(operation),
            )
            self._bound[operation, status] = bound
        bound[0].inc()
        bound[1].observe(seconds)

    def counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        """A new counter; `name` without ``logyard_`` and ``_total``."""
        return Counter(f"logyard_{name}", text, labels, registry=self.registry)

    def histogram(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...] = (),
        buckets: Sequence[float] = _SECONDS,
    ) -> Histogram:
        """A new histogram of seconds."""
        return Histogram(f"logyard_{name}", text, labels, buckets=buckets, registry=self.registry)

    def gauge(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...],
        read: Callable[[], Iterable[Reading]],
    ) -> None:
        """A new gauge whose values `read` gives when they are asked for."""
        self.registry.register(_Gauge(f"logyard_{name}", text, labels, read))

    def text(self) -> bytes:
        """All metrics in the text format."""
        return generate_latest(self.registry)


class _Gauge(Collector):
    def __init__(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...],
        read: Callable[[], Iterable[Reading]],
    ) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._read = read

    def describe(self) -> Iterable[Metric]:
        return [GaugeMetricFamily(self._name, self._text, labels=self._labels)]

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(self._name, self._text, labels=self._labels)
        for labels, value in self._read():
            family.add_metric([labels[name] for name in self._labels], value)
        return [family]
