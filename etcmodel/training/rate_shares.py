"""Optimizers that move some weights by a share of the learning rate only."""

import re

__all__ = ["END_OF_NAME", "with_shares"]

_RATES = ("lr", "lr_t")  # What an optimizer's state of a step calls its rates.
# Pattern: a further device calls its copy of a variable `<name>/replica_<number>`.
END_OF_NAME = r"(/replica_\d+)?(:\d+)?$"


def with_shares(optimizer_class, pairs):
    """A class of optimizers whose learning rates are multiplied, weight by weight.

    A gradient that is multiplied would not do: Adam's steps do not depend on its size.

    Args:
        optimizer_class: class of tf_keras legacy optimizers whose `_resource_apply_…` take their
            rates from `apply_state`, and with them the decay of weights.
        pairs: iterable of (variable, share of the rate, float); others have the whole rate.
    Returns:
        subclass of `optimizer_class`; itself if there are no pairs.
    Raises:
        ValueError: if two variables of one name have different shares.
    """
    shares = {}
    for variable, share in pairs:
        if shares.setdefault(_key(variable), share) != share:
            raise ValueError(f"Two variables {variable.name!r} have different shares of the rate.")
    if not shares:
        return optimizer_class

    class WithShares(optimizer_class):
        def _resource_apply_dense(self, grad, var, apply_state=None):
            state = _state_of(self, var, apply_state, shares)
            return super()._resource_apply_dense(grad, var, apply_state=state)

        def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
            state = _state_of(self, var, apply_state, shares)
            return super()._resource_apply_sparse(grad, var, indices, apply_state=state)

    return WithShares


def _key(variable):
    """What tells a variable from others, and is the same for its copies on all devices."""
    return re.sub(END_OF_NAME, "", variable.name)


def _state_of(optimizer, variable, state, shares):
    """The state of a step with the rates of one variable."""
    place = variable.device, variable.dtype.base_dtype
    known = (state or {}).get(place) or optimizer._fallback_apply_state(*place)
    share = shares.get(_key(variable), 1.0)
    return {place: {name: x * share if name in _RATES else x for name, x in known.items()}}
