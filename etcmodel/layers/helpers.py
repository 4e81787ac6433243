"""Small layers, under the module name of the authors' release."""

from etcmodel.layers.dense import DenseLayers
from etcmodel.layers.tracked_lambda import TrackedLambda

__all__ = ["DenseLayers", "TrackedLambda"]
