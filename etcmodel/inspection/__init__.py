"""Inspects a model: hidden states, attention probabilities, attributions, and an HTML page.

The functions take a model and its inputs, and do not change the model.
"""

from etcmodel.inspection.attention import MEAN, SIDES, Attention, attention, cross_attention
from etcmodel.inspection.attributions import Attributions, integrated_gradients
from etcmodel.inspection.hidden_states import hidden_states
from etcmodel.inspection.page import show_page, write_page

__all__ = [
    "MEAN",
    "SIDES",
    "Attention",
    "Attributions",
    "attention",
    "cross_attention",
    "hidden_states",
    "integrated_gradients",
    "show_page",
    "write_page",
]
