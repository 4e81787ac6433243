"""Variables and the checkpoint's variables of the same name."""

import numpy as np
import pytest
import tensorflow as tf

from etcmodel.models import input_utils
from etcmodel.models.input_utils import get_assignment_map_from_checkpoint
from etcmodel.text import tokenization

IN_CHECKPOINT = {"b/aa/aaa": [1.0], "b/f": [2.0], "a/c": [3.0], "global_step": 4}


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint whose variables have names, as TF1 wrote them."""
    path = str(tmp_path / "model.ckpt")
    names = list(IN_CHECKPOINT)
    tensors = [np.array(IN_CHECKPOINT[name], np.float32) for name in names]
    tf.raw_ops.SaveV2(
        prefix=path, tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors
    )
    return path


def variables(*names):
    return [tf.Variable([0.0], name=name) for name in names]


def test_names_are_compared_below_the_scopes(checkpoint):
    ours = variables("a/aa/aaa", "a/c", "a/f/f", "d/f", "b/f")
    found = get_assignment_map_from_checkpoint(ours, checkpoint, "a/", "b/")
    assert list(found) == ["b/aa/aaa"] and found["b/aa/aaa"] is ours[0]
    found = get_assignment_map_from_checkpoint(ours, checkpoint, "d/", "b/")
    assert list(found) == ["b/f"] and found["b/f"] is ours[3]


def test_without_scopes_full_names_are_compared(checkpoint):
    ours = variables("a/c", "b/f", "f")
    found = get_assignment_map_from_checkpoint(ours, checkpoint)
    assert set(found) == {"a/c", "b/f"}
    for name, variable in found.items():
        variable.assign(tf.train.load_variable(checkpoint, name))
    assert [float(variable[0]) for variable in ours] == [3.0, 2.0, 0.0]


@pytest.mark.parametrize("argument", ["variable_scope", "ckpt_variable_scope"])
def test_a_scope_ends_with_a_slash(checkpoint, argument):
    with pytest.raises(ValueError, match=f"`{argument}` must end with \"/\". Received: 'a'"):
        get_assignment_map_from_checkpoint([], checkpoint, **{argument: "a"})


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(ValueError, match="There is no checkpoint '.*nothing.ckpt'"):
        get_assignment_map_from_checkpoint([], str(tmp_path / "nothing.ckpt"))


def test_names_of_files_and_pieces():
    assert input_utils.get_assignment_map_from_checkpoint is get_assignment_map_from_checkpoint
    assert input_utils.MODEL_CONFIG_FILENAME == "etc_config.json"
    assert tokenization.SPIECE_UNDERLINE == "\u2581"
