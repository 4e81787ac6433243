"""A plugin of pytest, `-p tests.without_posix`: this package finds nothing that is POSIX's alone.

What others import of it stays: Python itself needs it here.
"""

import builtins
import os
import select
import signal

MODULES = ("fcntl", "grp", "pwd", "resource", "syslog", "termios")
ATTRIBUTES = {
    os: ("O_DIRECTORY", "fork", "forkpty", "killpg", "sched_getaffinity", "set_blocking", "setsid"),
    select: ("poll",),
    signal: ("pthread_sigmask", "pthread_kill"),
}


def _import(name, globals=None, *others, **settings):
    if name in MODULES and (globals or {}).get("__name__", "").startswith("etcmodel"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return _real_import(name, globals, *others, **settings)


def _open(file, *others, **settings):
    if str(file).startswith("/proc/"):
        raise FileNotFoundError(file)
    return _real_open(file, *others, **settings)


_real_import, builtins.__import__ = builtins.__import__, _import
_real_open, builtins.open = builtins.open, _open
for module, names in ATTRIBUTES.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
