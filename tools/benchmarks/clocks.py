"""What the seconds of a benchmark are of."""

import dataclasses
import time

from etcmodel.options import Options, option

__all__ = ["ClockOptions"]

_CLOCKS = {"time": time.perf_counter, "processor": time.process_time}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClockOptions(Options):
    """How it is measured."""

    clock: str = option(
        "time",
        "What seconds are of: 'time' that passes; or what the 'processor' does for the measured "
        "process, in all of its threads, which others who use it change little. Then measure one "
        "thread: TF_NUM_INTRAOP_THREADS=1 taskset --cpu-list 0 …",
        choices=tuple(_CLOCKS),
    )

    def seconds(self):
        """Of this process: float, to take differences of."""
        return _CLOCKS[self.clock]()
