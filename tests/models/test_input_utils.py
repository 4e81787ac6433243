"""Side inputs against their pair-by-pair twin; configs and records."""

import base64
import os

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.models import input_utils, modeling
from tests.models import numpy_side_inputs as twin

FEW_EXAMPLES = settings(max_examples=40)
NAMES = [
    f"{piece}_{what}"
    for what in ("att_mask", "relative_att_ids")
    for piece in ("l2l", "g2g", "l2g", "g2l")
]
CONFIG = modeling.EtcConfig(vocab_size=7, local_radius=2, relative_pos_max_distance=3)


def bits(size):
    return st.lists(st.integers(0, 1), min_size=size, max_size=size)


@st.composite
def structures(draw):
    """Breakpoints of a row, and each long token's sentence (-1: none)."""
    long_len, global_len = draw(st.integers(1, 10)), draw(st.integers(1, 5))
    sentence = st.integers(-1, global_len)
    return {
        "long_breakpoints": draw(bits(long_len)),
        "global_breakpoints": draw(bits(global_len)),
        "sentence_ids": draw(st.lists(sentence, min_size=long_len, max_size=long_len)),
    }


options = st.fixed_dictionaries(
    {
        "local_radius": st.integers(1, 4),
        "relative_pos_max_distance": st.integers(0, 3),
        "use_hard_g2l_mask": st.booleans(),
        "use_hard_l2g_mask": st.booleans(),
    }
)


def expected_side_inputs(long_examples, global_examples, sentences, options):
    """One row's side inputs by name."""
    num_long, num_global = len(long_examples), len(global_examples)
    radius, distance = options["local_radius"], options["relative_pos_max_distance"]

    def same_example(long, wide):
        return long_examples[long] == global_examples[wide]

    def l2g(is_hard):
        return twin.pairs(
            num_long,
            num_global,
            lambda t, g: same_example(t, g) and (not is_hard or sentences[t] == g),
        )

    masks = [
        twin.windows(
            num_long, radius, lambda a, b: long_examples[a] == long_examples[b], lambda a, b: 0
        ),
        twin.pairs(num_global, num_global, lambda a, b: global_examples[a] == global_examples[b]),
        l2g(options["use_hard_l2g_mask"]),
        l2g(options["use_hard_g2l_mask"]).T,
    ]
    if distance == 0:
        return dict(zip(NAMES, [*masks, None, None, None, None], strict=True))

    def position(a, b):
        return twin.position_label(a, b, distance)

    linked = twin.pairs(
        num_long, num_global, lambda t, g: 2 * distance + (2 if sentences[t] == g else 1)
    )
    labels = [
        twin.windows(num_long, radius, position, position),
        twin.pairs(num_global, num_global, position),
        linked,
        linked.T,
    ]
    return dict(zip(NAMES, [*masks, *labels], strict=True))


def assert_side_inputs(actual, expected):
    """Of one row."""
    assert list(actual.to_dict()) == list(expected)
    for name, value in actual.to_dict().items():
        if expected[name] is None:
            assert value is None, name
        else:
            assert value.dtype == tf.int32, name
            np.testing.assert_array_equal(value, expected[name][np.newaxis], err_msg=name)


@FEW_EXAMPLES
@given(structures(), options)
def test_side_inputs_from_breakpoints_equal_the_twin(structure, options):
    actual = input_utils.make_global_local_transformer_side_inputs(
        **{name: [row] for name, row in structure.items()}, **options
    )
    long_examples = twin.examples_of(structure["long_breakpoints"])
    global_examples = twin.examples_of(structure["global_breakpoints"])
    expected = expected_side_inputs(
        long_examples, global_examples, structure["sentence_ids"], options
    )
    assert_side_inputs(actual, expected)


@FEW_EXAMPLES
@given(structures(), options)
def test_side_inputs_from_example_ids_equal_the_twin(structure, options):
    rows = structure.values()  # Any numbers will do as example ids.
    actual = input_utils.make_global_local_transformer_side_inputs_from_example_ids(
        *([row] for row in rows), **options
    )
    assert_side_inputs(actual, expected_side_inputs(*rows, options))


@FEW_EXAMPLES
@given(st.integers(1, 10), st.integers(0, 10), st.integers(1, 4), options)
def test_fixed_blocks_have_a_global_token_each(long_len, num_real, block_len, options):
    mask = [int(i < num_real) for i in range(long_len)]
    actual, global_token_ids = input_utils.make_fixed_block_side_inputs(
        [mask], block_len, global_token_id=9, **options
    )
    blocks = [i // block_len for i in range(long_len)]
    is_real = [max(m for m, b in zip(mask, blocks, strict=True) if b == g) for g in set(blocks)]
    assert_side_inputs(actual, expected_side_inputs(mask, is_real, blocks, options))
    np.testing.assert_array_equal(global_token_ids, [[9 * real for real in is_real]])


def test_a_block_is_real_wherever_its_real_tokens_are():
    side_inputs, global_token_ids = input_utils.make_fixed_block_side_inputs(
        [[0, 0, 1, 0, 0, 0, 0, 1]], 3, local_radius=1, relative_pos_max_distance=0
    )
    np.testing.assert_array_equal(global_token_ids, [[1, 0, 1]])
    np.testing.assert_array_equal(side_inputs.l2g_att_mask[0, 2], [1, 0, 1])
    np.testing.assert_array_equal(side_inputs.g2g_att_mask[0], [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_a_block_has_at_least_a_token():
    with pytest.raises(ValueError, match="`num_tokens_per_block` must be positive. Received: 0"):
        input_utils.make_fixed_block_side_inputs([[1]], 0, 1, 1)


@pytest.mark.slow
def test_side_inputs_are_made_of_unknown_lengths_too():
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)] * 3)
    def make(*structure):
        return input_utils.make_global_local_transformer_side_inputs(*structure, 2, 3).to_dict()

    structure = [[0, 1, 0]], [[1, 0]], [[0, 0, 1]]
    expected = input_utils.make_global_local_transformer_side_inputs(*structure, 2, 3).to_dict()
    for name, value in make(*map(tf.constant, structure)).items():
        np.testing.assert_array_equal(value, expected[name])


def test_a_dict_can_do_without_what_is_none():
    made = input_utils.make_global_local_transformer_side_inputs([[1]], [[1]], [[0]], 1, 0)
    assert list(made.to_dict()) == NAMES
    assert list(made.to_dict(exclude_none_values=True)) == NAMES[:4]


def test_features_get_side_inputs_and_keep_what_they_had():
    features = {
        "long_breakpoints": tf.constant([[0, 1, 0]]),
        "global_breakpoints": tf.constant([[1, 0]]),
        "sentence_ids": tf.constant([[0, 0, 1]]),
        "token_ids": tf.constant([[1, 2, 3]]),
    }
    before = dict(features)
    result = input_utils.add_side_input_features(CONFIG, features)
    assert features == before
    assert set(result) == {*features, *NAMES}
    assert result["l2l_att_mask"].shape == [1, 3, 5]


@pytest.fixture
def source_file(tmp_path):
    file = tmp_path / "source.json"
    file.write_text(CONFIG.to_json_string(), encoding="utf-8")
    return str(file)


def test_the_config_comes_from_the_model_directory(tmp_path):
    (tmp_path / "etc_config.json").write_text(CONFIG.to_json_string(), encoding="utf-8")
    assert input_utils.get_model_config(str(tmp_path)) == CONFIG


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("is_file", [True, False])
def test_the_config_comes_from_a_source_and_is_kept(tmp_path, source_file, write, is_file):
    encoded = base64.b64encode(CONFIG.to_json_string().encode()).decode()
    source = {"source_file": source_file} if is_file else {"source_base64": encoded}
    model_dir = str(tmp_path / "new" / "model")
    config = input_utils.get_model_config(model_dir, **source, write_from_source=write)
    assert config == CONFIG
    assert os.path.exists(model_dir) is write
    if write:
        assert os.listdir(model_dir) == ["etc_config.json"]
        assert input_utils.get_model_config(model_dir) == CONFIG


@pytest.mark.parametrize("is_file", [True, False])
def test_a_models_own_config_wins_over_a_source_and_stays(tmp_path, source_file, is_file):
    own = modeling.EtcConfig(vocab_size=8, local_radius=5)
    path = tmp_path / "etc_config.json"
    path.write_text(own.to_json_string(), encoding="utf-8")
    encoded = base64.b64encode(CONFIG.to_json_string().encode()).decode()
    source = {"source_file": source_file} if is_file else {"source_base64": encoded}
    assert input_utils.get_model_config(str(tmp_path), **source) == own
    assert path.read_text(encoding="utf-8") == own.to_json_string()


def test_where_there_is_no_config_at_all_the_sources_are_named(tmp_path):
    with pytest.raises(ValueError, match="no '.*etc_config.json': give `source_file` or `source_b"):
        input_utils.get_model_config(str(tmp_path))


def test_two_sources_are_refused(tmp_path, source_file):
    with pytest.raises(ValueError, match="Give `source_file` or `source_base64`, not both"):
        input_utils.get_model_config(str(tmp_path), source_file, "e30=")


def test_a_broken_source_is_not_kept(tmp_path):
    file = tmp_path / "broken.json"
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=f"{file}: The config has no `vocab_size`"):
        input_utils.get_model_config(str(tmp_path / "model"), str(file))
    assert not (tmp_path / "model").exists()


def test_a_source_of_no_possible_model_is_not_kept(tmp_path):
    """It would win over the mended source."""
    file = tmp_path / "source.json"
    file.write_text('{"vocab_size": 9, "num_attention_heads": 0}', encoding="utf-8")
    with pytest.raises(ValueError, match="`num_attention_heads` must be at least 1. Received: 0"):
        input_utils.get_model_config(str(tmp_path / "model"), str(file))
    assert not (tmp_path / "model").exists()


def test_record_features_are_read_as_written():
    written = {
        "ints": input_utils.create_int_feature([3, -1]),
        "floats": input_utils.create_float_feature(x / 4 for x in range(3)),
        "text": input_utils.create_bytes_feature(["naïve", b"\xff"]),
        "empty": tf.train.Feature(),
    }
    example = tf.train.Example(features=tf.train.Features(feature=written))
    read = {name: list(input_utils.get_repeated_values(name, example)) for name in written}
    assert read == {
        "ints": [3, -1],
        "floats": [0.0, 0.25, 0.5],
        "text": ["naïve".encode(), b"\xff"],
        "empty": [],
    }
    assert input_utils.get_feature("ints", example) == 3


def test_a_missing_record_feature_is_named():
    with pytest.raises(ValueError, match="no feature 'ints'"):
        input_utils.get_feature("ints", tf.train.Example())
