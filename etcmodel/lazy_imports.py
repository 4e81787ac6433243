"""Packages that import their parts at first use, so that `--help` does not wait for TensorFlow."""

import importlib
import sys
import typing
from collections.abc import Callable, Mapping


def attributes(package: str, homes: Mapping[str, str]) -> Callable[[str], typing.Any]:
    """Makes the `__getattr__` of a package's `__init__`, which imports attributes at first use.

    `dir` of the package then lists its `__all__`, not its internal imports.

    Args:
        package: str. Name of the package.
        homes: dict of an attribute's name to the module that contains it, or is it: a name within
            the package, or a dotted one.
    Returns:
        function of an attribute's name that returns the attribute.
    """

    def get(name: str) -> typing.Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        home = home if "." in home else f"{package}.{home}"
        module = importlib.import_module(home)
        return module if home == f"{package}.{name}" else getattr(module, name)

    namespace = vars(sys.modules[package])
    namespace["__dir__"] = lambda: sorted([*namespace.get("__all__", homes), "__doc__", "__name__"])
    return get
