"""Packages that import their parts at first use, so that `--help` does not wait for TensorFlow."""

import importlib
import sys
import typing
from collections.abc import Callable, Mapping

__all__ = ["attributes"]


def attributes(package: str, homes: Mapping[str, str]) -> Callable[[str], typing.Any]:
    """The `__getattr__` of a package's `__init__`: imports what is asked for.

    `dir` of the package tells its `__all__` then, and not what it needs itself.

    Args:
        package: str. Name of the package.
        homes: dict of the name of an attribute to the module that has it, or is it: a name within
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
