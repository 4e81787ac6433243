"""What the server did so far, in the text format of Prometheus."""

import bisect
import collections
import itertools
import threading

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts answered requests by route and status, and their times by route.

    >>> from etcmodel.serving import rest
    >>> metrics = rest.Metrics()
    >>> metrics.add("predict", 200, seconds=0.2)
    >>> print(metrics.text().splitlines()[2])
    etcmodel_requests_total{route="predict",status="200"} 1
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._requests = collections.Counter()  # By (route, status).
        self._buckets = {}  # By route: how many took at most so long, and longer.
        self._seconds = collections.Counter()  # By route.

    def add(self, route, status, seconds):
        """Records an answered request.

        Args:
            route: str. What was asked for, such as "predict"; nothing that a client sent.
            status: int. The status of the answer.
            seconds: float. From the request's first byte to the answer's last.
        """
        with self._lock:
            self._requests[route, status] += 1
            buckets = self._buckets.setdefault(route, [0] * (len(_SECONDS) + 1))
            buckets[bisect.bisect_left(_SECONDS, seconds)] += 1
            self._seconds[route] += seconds

    def text(self):
        """All metrics: str, a line each, with their kinds and what they are."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self):
        name = "etcmodel_requests_total"
        yield f"# HELP {name} Requests that were answered."
        yield f"# TYPE {name} counter"
        for (route, status), number in sorted(self._requests.items()):
            yield f'{name}{{route="{route}",status="{status}"}} {number}'
        name = "etcmodel_request_seconds"
        yield f"# HELP {name} Time to answer a request."
        yield f"# TYPE {name} histogram"
        for route, buckets in sorted(self._buckets.items()):
            totals = list(itertools.accumulate(buckets))
            for limit, number in zip((*_SECONDS, "+Inf"), totals, strict=True):
                yield f'{name}_bucket{{route="{route}",le="{limit}"}} {number}'
            yield f'{name}_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {totals[-1]}'
