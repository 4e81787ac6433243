"""The clock of a benchmark."""

import dataclasses
import time

from etcmodel.options import Options, option

__all__ = ["ClockOptions"]

_CLOCKS = {"time": time.perf_counter, "processor": time.process_time}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClockOptions(Options):
    """The choice of a clock."""

    clock: str = option(
        "time",
        "Clock for the seconds: wall-clock 'time'; or 'processor', the CPU time of all threads of "
        "the measured process, which other load on the machine hardly changes. With 'processor', "
        "measure a single thread: TF_NUM_INTRAOP_THREADS=1 taskset --cpu-list 0 …",
        choices=tuple(_CLOCKS),
    )

    def seconds(self):
        """Of this process: float, to take differences of."""
        return _CLOCKS[self.clock]()
