"""Optimizers that use only a fraction of the learning rate for some weights."""

import re

__all__ = ["END_OF_NAME", "with_shares"]

_RATES = ("lr", "lr_t")  # Names of the rates in an optimizer's state of a step.
# Pattern of the copies of a variable on further devices: `<name>/replica_<number>`.
END_OF_NAME = r"(/replica_\d+)?(:\d+)?$"


def with_shares(optimizer_class, pairs):
    """Makes an optimizer class that multiplies learning rates by factors, per variable.

    Multiplying gradients would have no effect: Adam's steps do not depend on their scale.

    Args:
        optimizer_class: class of tf_keras legacy optimizers whose `_resource_apply_…` methods take
            their rates, and thereby the weight decay, from `apply_state`.
        pairs: iterable of (variable, float: fraction of the rate); others have the full rate.
    Returns:
        subclass of `optimizer_class`; `optimizer_class` itself if there are no pairs.
    Raises:
        ValueError: if two variables with the same name have different fractions.
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
    """The identity of a variable, equal for its copies on all devices."""
    return re.sub(END_OF_NAME, "", variable.name)


def _state_of(optimizer, variable, state, shares):
    """The state of a step, with the rates for one variable."""
    place = variable.device, variable.dtype.base_dtype
    known = (state or {}).get(place) or optimizer._fallback_apply_state(*place)
    share = shares.get(_key(variable), 1.0)
    return {place: {name: x * share if name in _RATES else x for name, x in known.items()}}
