"""What Hugging Face calls its activations."""

import math

import pytest
import tensorflow as tf

from etcmodel.models import hugging_face


def tanh_gelu(x):
    return x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


FUNCTIONS = {
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "gelu_fast": tanh_gelu,
    "gelu_new": tanh_gelu,
    "gelu_pytorch_tanh": tanh_gelu,
    "relu": lambda x: max(x, 0),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "swish": lambda x: x / (1 + math.exp(-x)),
    "tanh": math.tanh,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_name_is_its_function(name):
    found = hugging_face.activation(name)(tf.constant([-2.0, -0.5, 0.0, 1.5]))
    wanted = [FUNCTIONS[name](x) for x in (-2.0, -0.5, 0.0, 1.5)]
    assert found.numpy().tolist() == pytest.approx(wanted, abs=1e-6)


def test_others_are_refused_with_those_there_are():
    with pytest.raises(ValueError, match=f"'swoosh'; choose one of {', '.join(FUNCTIONS)}"):
        hugging_face.activation("swoosh")
