"""Keeps TensorFlow's own messages out of what the programs print.

These are for who works on TensorFlow: plugins that are registered twice, services that start, a
variable that takes long to copy. What goes wrong its exceptions tell, too.
"""

import contextlib
import ctypes
import faulthandler
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import pathlib
import sys
import tempfile

__all__ = ["quiet_tensorflow", "show_own_messages"]

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_SET_HERE = "ETCMODEL_QUIET"  # Tells the programs that a program starts: nobody asked for it.
_FATAL = 3
# `absl::SetMinLogLevel`; parts of TensorFlow log by Abseil alone, which reads no variable.
_SET_MIN_LOG_LEVEL = "_ZN4absl12lts_2025012714SetMinLogLevelENS0_18LogSeverityAtLeastE"
_LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")
_OTHERS = tuple(f"{os.sep}{name}{os.sep}" for name in ("tensorflow", "official", "tf_keras"))


def quiet_tensorflow():
    """Silences the messages of TensorFlow's C++ code, unless TF_CPP_MIN_LOG_LEVEL is set.

    To be called before TensorFlow is imported.
    """
    if _LEVEL not in os.environ:
        os.environ[_LEVEL] = str(_FATAL)
        os.environ[_SET_HERE] = "1"
    if _SET_HERE in os.environ and not any(isinstance(x, _QuietImport) for x in sys.meta_path):
        sys.meta_path.insert(0, _QuietImport())


def show_own_messages():
    """Shows what this package logs at INFO, and of TensorFlow and its kin only warnings."""
    from absl import logging as absl_logging

    absl_logging.set_verbosity(absl_logging.INFO)
    absl_logging.get_absl_handler().addFilter(_is_own_or_warning)
    logging.getLogger("tensorflow").setLevel(logging.WARNING)


def _is_own_or_warning(record):
    is_others = any(name in record.pathname for name in _OTHERS)
    return record.levelno >= logging.WARNING or not is_others


class _QuietImport(importlib.abc.MetaPathFinder):
    """Imports TensorFlow with its standard error put aside, and then lowers Abseil's voice."""

    def find_spec(self, name, path=None, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_quietly(module):
                with _put_aside_stderr():
                    load(module)
                _quiet_abseil(pathlib.Path(spec.origin).parent)

            spec.loader.exec_module = load_quietly
        return spec


@contextlib.contextmanager
def _put_aside_stderr():
    """Shows what is written to the process's standard error only if there is an exception.

    Where the process itself is ended, it still tells that this was in the import.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile() as aside:
        original = os.dup(2)
        os.dup2(aside.fileno(), 2)
        tells_already = faulthandler.is_enabled()
        if not tells_already:
            faulthandler.enable(original)
        try:
            yield
        except BaseException:
            aside.seek(0)
            os.write(original, aside.read())
            raise
        finally:
            if not tells_already:
                faulthandler.disable()
            sys.stderr.flush()
            os.dup2(original, 2)
            os.close(original)


def _quiet_abseil(folder):
    for library in _LIBRARIES:
        with contextlib.suppress(OSError, AttributeError):  # Of another version of TensorFlow.
            getattr(ctypes.CDLL(str(folder / library)), _SET_MIN_LOG_LEVEL)(_FATAL)
