"""Dropout as a function of its seed."""

from etcmodel.ops.dropout import stateless_dropout

__all__ = ["stateless_dropout"]
