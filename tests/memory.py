"""Frees what a module of tests leaves behind, so that a process of many of them stays small."""

import ctypes
import gc
import sys

__all__ = ["end_iterators_at_once", "free"]


def free():
    """Drops the caches of the tests and of Keras and TensorFlow, and gives the memory back.

    Weights, data and graphs of a module of tests are of no use to the next one.
    """
    _clear_caches_of_tests()
    if "tf_keras" in sys.modules:  # Not to be imported for tests that do without.
        sys.modules["tf_keras"].backend.clear_session()
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # glibc keeps freed memory for itself.
        libc.malloc_trim(0)


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


def _clear_caches_of_tests():
    modules = [module for name, module in sys.modules.items() if name.startswith("tests.")]
    for module in modules:
        for value in list(vars(module).values()):
            if callable(getattr(type(value), "cache_clear", None)):
                value.cache_clear()
