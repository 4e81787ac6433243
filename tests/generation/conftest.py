"""Short searches without tracing."""

from tests.eager import eagerly, in_graphs  # noqa: F401
