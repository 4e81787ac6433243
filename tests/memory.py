"""Frees what a module of tests leaves behind, so that a process of many of them stays small."""

import ctypes
import functools
import gc
import queue
import resource
import sys
import threading
import time
import traceback
import weakref

GROWTH = 2**29  # Bytes.
_resident_at_last_look = 2**30
_collecting = {}  # The `thread` that collects garbage, or None; `end`s freeing. Empty at first.
_kept = []  # What belongs to iterators that this thread collects.


def free():
    """Drops the caches of the tests and of Keras and TensorFlow, and gives the memory back.

    Weights, data and graphs of a module of tests are of no use to the next one. What stays is not
    looked through for garbage at the end of each of hundreds of modules, but only once the process
    has grown by `GROWTH`: some of it is garbage by then.
    """
    global _resident_at_last_look
    _clear_caches_of_tests()
    for keras in ("tf_keras", "keras"):
        if keras in sys.modules:  # Not to be imported for tests that do without.
            sys.modules[keras].backend.clear_session()
    grown = _resident() > _resident_at_last_look + GROWTH
    if grown:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # glibc keeps freed memory for itself.
        libc.malloc_trim(0)
    if grown:
        _resident_at_last_look = _resident()


def collect_garbage():
    """`gc.collect`, also while another thread collects: Python would return at once then.

    Raises:
        TimeoutError: if another one does not end; it names what the threads do.
    """
    own, done = threading.get_ident(), []

    def note(phase, info):
        del info
        if phase == "stop" and threading.get_ident() == own:
            done.append(True)

    end = time.monotonic() + 90
    gc.callbacks.append(note)
    try:
        while not done and time.monotonic() < end:
            gc.collect()
    finally:
        gc.callbacks.remove(note)
    if not done:
        frames = sys._current_frames().values()
        told = "\n".join("".join(traceback.format_stack(frame)) for frame in frames)
        raise TimeoutError(f"A thread collects garbage and does not end:\n{told}")


def _resident():
    """Bytes of this process that are in memory; where the system does not say, the most so far."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def end_iterators_at_once():
    """Else freeing one may take up to a minute: see `autotuning.without_autotuning`.

    That is of the library's own data sets; here are also those of tests, and those that TensorFlow
    makes for each device, which have no options.
    """
    if "tensorflow" not in sys.modules:  # Not for tests that do without.
        return
    from tensorflow.python.data.ops import dataset_ops

    from etcmodel import autotuning

    plain = dataset_ops.DatasetV2._apply_debug_options  # Called for each iterator.
    if plain.__name__ != "untuned":

        def untuned(dataset):
            return autotuning.without_autotuning(plain(dataset))

        dataset_ops.DatasetV2._apply_debug_options = untuned


def free_iterators_in_a_thread():
    """Else no garbage may ever be collected again.

    TensorFlow frees an iterator once its threads have ended. If one of these runs Python and
    collects the iterator as garbage, it waits for itself; Python collects in one thread at a time.
    So what belongs to a garbage iterator is kept until the collection is over.
    """
    if "tensorflow" not in sys.modules or _collecting:
        return
    from tensorflow.python.data.ops import iterator_ops, multi_device_iterator_ops

    freed = queue.SimpleQueue()

    def note(phase, info):
        del info
        _collecting["thread"] = threading.get_ident() if phase == "start" else None
        while phase == "stop" and _kept:
            freed.put(_kept.pop())

    def free_all():
        while freed.get() is not None:
            pass

    def end():
        freed.put(None)
        freeing.join(60)  # A process that ends while something is freed may crash.

    freeing = threading.Thread(target=free_all, name="frees iterators", daemon=True)
    freeing.start()
    _collecting.update(thread=None, end=end)
    gc.callbacks.append(note)
    _keep_while_collecting(iterator_ops.OwnedIterator, "_iterator_resource")
    owned = multi_device_iterator_ops.OwnedMultiDeviceIterator
    _keep_while_collecting(owned, "_multi_device_iterator_resource")


def end_freeing():
    """Waits for what is still to be freed."""
    if end := _collecting.pop("end", None):
        end()


def _keep_while_collecting(kind, name):
    """Has the resource `name` of each object of the class outlive a collection of the object."""
    make = kind.__init__

    def keep(resource):
        if _collecting["thread"] == threading.get_ident():
            _kept.append(resource)

    @functools.wraps(make)
    def made(self, *arguments, **named):
        make(self, *arguments, **named)
        if hasattr(resource := getattr(self, name), "numpy"):  # A graph would stay with its own.
            weakref.finalize(self, keep, resource).atexit = False

    kind.__init__ = made


def _clear_caches_of_tests():
    modules = [module for name, module in sys.modules.items() if name.startswith("tests.")]
    for module in modules:
        for value in list(vars(module).values()):
            if callable(getattr(type(value), "cache_clear", None)):
                value.cache_clear()
