"""The whole system of docs/extending.md, from the page itself; known only where it is registered.

All that the page's blocks define is in this module, such as `BagConfig` and `Bag`.
"""

import contextlib
import dataclasses

from etcmodel.models import heads, systems
from etcmodel.models.heads import base as heads_base
from tests import page

_NAMES = globals()
for _block in page.code_in_place("Add a whole system"):
    exec(compile(_block, str(page.PAGE), "exec"), _NAMES)  # The library's own page.
SYSTEM, MORE = _NAMES["SYSTEM"], _NAMES["MORE"]
REGISTERED = systems._SYSTEMS.pop(SYSTEM.model_type)
_TYPES = [name for name, head in heads_base._HEADS.items() if head.__module__ == __name__]
HEADS = tuple(map(heads_base._HEADS.pop, _TYPES))


@contextlib.contextmanager
def registered(**changes):
    """The library knows the system, with some entries of its record changed, until the end."""
    before, heads_before = dict(systems._SYSTEMS), dict(heads_base._HEADS)
    systems._SYSTEMS.pop("bag", None)
    for head in HEADS:
        heads.register_head(head)
    try:
        yield systems.register(dataclasses.replace(SYSTEM, **changes))
    finally:
        for registry, kept in (
            (systems._SYSTEMS, before),
            (heads_base._HEADS, heads_before),
        ):
            registry.clear()
            registry.update(kept)
