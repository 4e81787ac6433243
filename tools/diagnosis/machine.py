"""The devices and the memory of this machine."""

import os

from .findings import BROKEN, OK, Finding

__all__ = ["findings"]

_GIB = 2**30
_ENOUGH = 2 * _GIB  # A base model and TensorFlow itself.


def findings():
    """Yields a `Finding` for processors, memory and each device that TensorFlow detects."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding(OK, "processor cores", str(usable))
    yield memory_finding(*_memory())
    try:
        import tensorflow as tf
    except Exception as error:  # Importing a broken package may raise anything.
        yield Finding(BROKEN, "tensorflow", f"cannot be imported: {error}".partition("\n")[0])
        return
    for kind in ("GPU", "TPU"):
        devices = tf.config.list_physical_devices(kind)
        names = [tf.config.experimental.get_device_details(x).get("device_name") for x in devices]
        told = ", ".join(name or kind for name in names) or "none that TensorFlow sees"
        yield Finding(OK, f"{kind} devices", told)


def memory_finding(total, available):
    """Total and available memory in bytes, or None where unknown."""
    if total is None:
        return Finding(OK, "memory", "unknown on this system")
    told = f"{total / _GIB:.1f} GiB, of which {available / _GIB:.1f} GiB are free"
    if available < _ENOUGH:
        return Finding(OK, "memory", f"{told}: too little for a model of base size")
    return Finding(OK, "memory", told)


def _memory():
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            sizes = dict(line.split(":", 1) for line in file)
        return tuple(int(sizes[x].split()[0]) * 1024 for x in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return None, None
