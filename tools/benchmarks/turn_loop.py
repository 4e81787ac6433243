"""The other end of `turns.Worker`: runs requests and returns their durations.

Needs nothing but Python: `torch_worker` and `keras_hub_worker` run where this package is not.
"""

import json
import sys
import time

try:
    import resource
except ImportError:  # As on Windows.
    resource = None

__all__ = ["serve"]


def serve(phases):
    """Answers requests until the input ends.

    Args:
        phases: dict of names to functions without arguments, which return when the work is done.
    """
    for line in sys.stdin:
        run = phases[json.loads(line)]
        start, start_of_processor = time.perf_counter(), time.process_time()
        run()
        answer = {
            "time": time.perf_counter() - start,
            "processor": time.process_time() - start_of_processor,
            "peak_bytes": resource and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        print(json.dumps(answer), flush=True)
