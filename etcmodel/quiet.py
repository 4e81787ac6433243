"""Hides TensorFlow's own messages from users of programs and of the library.

They are meant for TensorFlow's developers: plugins registered twice, services that start, a
variable that takes long to copy. Problems also raise exceptions. With TF_CPP_MIN_LOG_LEVEL=0
everything is shown. That variable alone does not suffice: at level 3, TensorFlow 2.19 and 2.21
still log by Abseil when they are imported, and 2.19 and 2.20 when XLA compiles.
"""

import contextlib
import faulthandler
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import pathlib
import re
import sys
import tempfile

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_FATAL = "3"
_OTHERS = tuple(f"{os.sep}{name}{os.sep}" for name in ("tensorflow", "official", "tf_keras"))


def quiet_tensorflow(*, is_program=True):
    """Silences the messages of TensorFlow's C++ code, unless TF_CPP_MIN_LOG_LEVEL is 0.

    Call it before TensorFlow is imported; later it only silences messages that no variable
    controls.

    Args:
        is_program: bool. Whether other levels that are set, which control only how much TensorFlow
            shows, also mean silence; the library respects them.
    """
    level = os.environ.get(_LEVEL, _FATAL)
    if level not in ("1", "2", _FATAL):
        return
    level = os.environ[_LEVEL] = _FATAL if is_program else level
    if "tensorflow" in sys.modules:
        _set_abseil_level(int(level))
    else:
        sys.meta_path[:] = [x for x in sys.meta_path if not isinstance(x, _QuietImport)]
        sys.meta_path.insert(0, _QuietImport(level))


def show_own_messages():
    """Shows this package's INFO log, and only warnings of TensorFlow and related packages."""
    from absl import logging as absl_logging

    absl_logging.set_verbosity(absl_logging.INFO)
    absl_logging.get_absl_handler().addFilter(_is_own_or_warning)
    logging.getLogger("tensorflow").setLevel(logging.WARNING)


def _is_own_or_warning(record):
    is_others = any(name in record.pathname for name in _OTHERS)
    return record.levelno >= logging.WARNING or not is_others


class _QuietImport(importlib.abc.MetaPathFinder):
    """Imports TensorFlow with standard error redirected, and then raises Abseil's log level."""

    def __init__(self, level):
        self._level = level

    def find_spec(self, name, path=None, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_quietly(module):
                is_silent = self._level == _FATAL
                with _put_aside_stderr() if is_silent else contextlib.nullcontext():
                    load(module)
                _set_abseil_level(int(self._level))

            spec.loader.exec_module = load_quietly
        return spec


@contextlib.contextmanager
def _put_aside_stderr():
    """Shows the process's standard error only if there is an exception.

    If the process itself is ended, it still reports that this was during the import.
    """
    _flush()
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115  # It is closed below.
        original = os.dup(2)
    except OSError:  # There is no room, or nothing to redirect.
        yield
        return
    with file as aside:
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
            _flush()
            os.dup2(original, 2)
            os.close(original)


def _flush():
    with contextlib.suppress(Exception):  # It may be None, closed, or of another kind.
        sys.stderr.flush()


def _set_abseil_level(level):
    """Calls `absl::SetMinLogLevel`: parts of TensorFlow log by Abseil, which reads no variable.

    TensorFlow's library exports it, in the namespace named by the headers beside it. If either
    differs, messages are shown.
    """
    import ctypes  # `import etcmodel` does not wait for it.

    import tensorflow as tf

    with contextlib.suppress(OSError, AttributeError, TypeError):
        headers = pathlib.Path(tf.sysconfig.get_include())
        options = (headers / "absl" / "base" / "options.h").read_text(encoding="utf-8")
        space = re.search(r"^#define ABSL_OPTION_INLINE_NAMESPACE_NAME (\w+)", options, re.M)[1]
        name = f"_ZN4absl{len(space)}{space}14SetMinLogLevelENS0_18LogSeverityAtLeastE"
        for library in pathlib.Path(tf.sysconfig.get_lib()).glob("libtensorflow_framework.*"):
            getattr(ctypes.CDLL(str(library)), name)(level)
