"""One rule for the entries of all configs: which there are, and what their numbers may be."""

import dataclasses
import json
import math
import re
import typing

import pytest

from etcmodel.checkpoints import bert, lifting_bart
from etcmodel.models import encoders, hugging_face, json_config, longt5
from etcmodel.models.seq2seq import generation_config
from tests.models import head_cases
from tests.models.bigbird import small as bigbirds
from tests.models.bigbird_pegasus import models as bigbird_pegasuses
from tests.models.gmat import genbert
from tests.models.gmat import small as gmats
from tests.models.led import models as leds
from tests.models.longformer import small as longformers
from tests.models.longformer_char_lm import char_models
from tests.models.longt5 import models as longt5s
from tests.models.modernbert import small as modernberts
from tests.models.pegasus_x import models as pegasus_xs


@dataclasses.dataclass(frozen=True, kw_only=True)
class NewConfig(json_config.JsonConfig):
    """What a new system has by itself."""

    model_type: typing.ClassVar[str] = "new"
    at_least_1: typing.ClassVar[tuple] = ("vocab_size",)

    vocab_size: int
    window: int = 3
    windows: tuple = (2, 3)
    residual_dropout: float = 0.1
    layer_norm_eps: float = 1e-5

    def __post_init__(self):
        self.check()


CONFIGS = {
    config.model_type: config
    for config in (
        head_cases.config(),
        longformers.config(),
        bigbirds.config(),
        bigbird_pegasuses.config(),
        leds.config(),
        longt5s.config(),
        pegasus_xs.config(),
        modernberts.config(),
        modernberts.etc_config(),
        gmats.config(),
        genbert.config(),
        char_models.config(),
        NewConfig(vocab_size=9),
    )
}
NUMBERS = [
    (name, field.name)
    for name, config in CONFIGS.items()
    for field in dataclasses.fields(config)
    if {int, float} & {field.type, *typing.get_args(field.type)}
]
# A label, not a number of something.
NUMBERS.remove(("modernbert", "sparse_pred_ignore_index"))
NUMBERS.remove(("etc_modernbert", "sparse_pred_ignore_index"))
WRONG = [math.nan, math.inf, -math.inf, -1, True, "12", [], 10**400, {"a": 1}]


def test_the_configs_of_all_systems_are_tried():
    assert {x.model_type for x in encoders.registered_types()} <= {*CONFIGS}


@pytest.mark.parametrize(("kind", "name"), NUMBERS)
def test_a_number_that_cannot_be_is_refused_by_name(kind, name):
    """From a file and in Python alike; an ETC's config may be assigned, and is checked at last."""
    config = CONFIGS[kind]
    is_of_ints = float not in {config.__dataclass_fields__[name].type}
    for value in [*WRONG, *([1.5] if is_of_ints else [1.5] * ("dropout" in name))]:
        with pytest.raises(ValueError, match=f"`{name}`") as error:
            type(config).from_dict({**config.to_dict(), name: value})
        assert len(str(error.value)) < 400 and "\n" not in str(error.value)
        with pytest.raises(ValueError, match=f"`{name}`"):
            dataclasses.replace(config, **{name: value}).check()


def test_numbers_in_a_list_are_numbers():
    for windows in ((4, -1), (4, math.nan), (4, (2**31,))):
        with pytest.raises(ValueError, match="`windows` must be at "):
            NewConfig(vocab_size=9, windows=windows)
    assert NewConfig.from_dict({"vocab_size": 9, "windows": [0, [4]]}).windows == (0, (4,))


@pytest.mark.parametrize("kind", CONFIGS)
def test_an_unknown_entry_is_refused_by_name(kind):
    entries = {**CONFIGS[kind].to_dict(), "residual_scale": 2.0, "blob": "x" * 9999}
    message = (
        r"unknown settings, which may change .*: blob='x*\.\.\.x*', residual_scale=2.0. Remove"
    )
    with pytest.raises(ValueError, match=message) as error:
        type(CONFIGS[kind]).of_entries(entries)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("kind", CONFIGS)
def test_entries_that_change_nothing_are_passed_over(kind):
    config, known = CONFIGS[kind], {"architectures", "id2label", "num_labels", "problem_type"}
    harmless = dict.fromkeys(type(config).without_effect - known, 3)
    usual = {name: values[0] for name, values in type(config).only.items()}
    entries = {"dense_act_fn": "gelu_new", "is_gated_act": True} if kind == "longt5" else {}
    if hasattr(config, "encoder_layers"):  # Of which there is a copy.
        entries["num_hidden_layers"] = config.encoder_layers
    assert type(config).from_dict({**harmless, **usual, **entries, **config.to_dict()}) == config


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("pruned_heads", {"0": [1]}),
        ("position_embedding_type", "relative_key"),
        ("quantization_config", {"load_in_8bit": True}),
        ("architectures", 0.5),
        ("architectures", [1]),
        ("id2label", ["a"]),
        ("id2label", {"0": []}),
        ("num_labels", "3"),
        ("problem_type", []),
    ],
)
def test_known_entries_are_refused_by_their_values(kind, name, value):
    config = CONFIGS[kind]
    with pytest.raises(ValueError, match=f"`{name}` must be .*Received: {re.escape(repr(value))}"):
        type(config).from_dict({**config.to_dict(), name: value})


# By `model_type`: entries, and what is said of them.
CONTRADICTIONS = {
    "bigbird_pegasus": [
        ({"num_hidden_layers": 9}, "`num_hidden_layers` must be as `encoder_layers`"),
    ],
    "big_bird": [
        ({"attention_type": "sparse"}, "`attention_type` must be one of"),
        ({"block_size": 0}, "`block_size` must be at least 1"),
        ({"is_decoder": True}, "`is_decoder` must be False"),
    ],
    "gmat": [
        ({"is_encoder_decoder": True}, "`is_encoder_decoder` must be False"),
        ({"hidden_act": "swoosh"}, "Unknown activation 'swoosh'"),
        ({"chunk_size": 0}, "`chunk_size` must be at least 1"),
        ({"num_memory_tokens": -1}, "`num_memory_tokens` must be at least 0"),
        ({"memory_type_id": 2}, "`memory_type_id` must be below `type_vocab_size`, 2"),
        ({"num_memory_layers": 1}, "`num_memory_layers` needs `num_compression_layers`"),
        ({"num_compression_layers": 3}, "Compression needs memory tokens, and layers after"),
        (
            {"num_compression_layers": 1, "num_memory_tokens": 0},
            "Compression needs memory tokens",
        ),
        ({"decompressor_input": "words"}, "`decompressor_input` must be one of"),
    ],
    "led": [
        ({"scale_embedding": True}, "`scale_embedding` must be False"),
        ({"add_final_layer_norm": True}, "`add_final_layer_norm` must be False"),
        ({"encoder_layerdrop": 0.1}, "`encoder_layerdrop` must be 0"),
        ({"is_encoder_decoder": False}, "`is_encoder_decoder` must be True"),
        ({"attention_window": (4, 5)}, "`attention_window` must be even"),
        ({"attention_window": (4, 4, 4)}, "`attention_window` .*one entry for each of 2 layers"),
        ({"max_global_tokens": -1}, "`max_global_tokens` must be at least 0"),
        ({"global_positions": (-1,)}, "`global_positions` must be at least 0"),
        ({"global_positions": ("a",)}, "`global_positions` must be positions of tokens"),
    ],
    "longformer": [
        ({"hidden_act": "swoosh"}, "Unknown activation 'swoosh'"),
        ({"attention_window": 5}, "`attention_window` must be even"),
        ({"attention_window": (4, 6, 8)}, "`attention_window` must be .* each of 2 layers"),
        ({"attention_dilation": 0}, "`attention_dilation` must be at least 1"),
        ({"attention_dilation": ((1, 2, 3), 1)}, ".*there one for each of 2 heads"),
        ({"max_global_tokens": -1}, "`max_global_tokens` must be at least 0"),
    ],
    "longformer_char_lm": [
        ({"attention_window": 0}, "`attention_window` must be at least 1"),
        ({"attention_window": (4, 6)}, "`attention_window` must be .* each of 3 layers"),
        ({"attention_dilation": 0}, "`attention_dilation` must be at least 1"),
        ({"attention_dilation": ((1, 2, 3), 1, 1)}, ".*there one for each of 2 heads"),
        (
            {"hidden_size": 9, "num_attention_heads": 3, "attention_dilation": 1},
            "`hidden_size` must be even",
        ),
        ({"hidden_act": "sine"}, "`hidden_act` must be one of gelu, .* Received: 'sine'"),
    ],
    "longt5": [
        ({"is_gated_act": False}, "`is_gated_act` must be True, as `feed_forward_pro"),
        (
            {"feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu"},
            "`dense_act_fn` must be 'gelu_new', as `feed_forward_proj` is 'gated-gelu'",
        ),
        ({"num_hidden_layers": 3}, "unknown settings, .*: num_hidden_layers=3"),
        ({"num_decoder_layers": 0}, "`num_decoder_layers` must be at least 1"),
        ({"encoder_attention_type": "global"}, ".*must be 'local' or 'transient-global'"),
        ({"relative_attention_num_buckets": 7}, ".*must be even"),
    ],
    "pegasus_x": [
        ({"normalize_before": False}, "`normalize_before` must be True"),
        ({"static_position_embeddings": False}, "`static_position_embeddings`"),
        ({"num_hidden_layers": 9}, "`num_hidden_layers` must be as `encoder_layers`"),
        ({"hidden_size": 3}, "unknown settings, .*: hidden_size=3"),
        (
            {"d_model": 3, "encoder_attention_heads": 1, "decoder_attention_heads": 1},
            "`d_model` must be even",
        ),
        ({"grad_checkpointing_period": -1}, "`grad_checkpointing_period` must be at least 0"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "entries", "message"),
    [(kind, *row) for kind, rows in CONTRADICTIONS.items() for row in rows],
)
def test_what_contradicts_a_system_is_refused(kind, entries, message):
    with pytest.raises(ValueError, match=f"some.json: {message}"):
        read(kind, {**CONFIGS[kind].to_dict(), **entries})


def test_so_it_is_by_the_constructor():
    refused = set()
    for kind, rows in CONTRADICTIONS.items():
        fields = {field.name for field in dataclasses.fields(CONFIGS[kind])}
        for entries, message in rows:
            if entries.keys() <= fields:  # Others are of files alone.
                refused.add(kind)
                with pytest.raises(ValueError, match=message):
                    encoders.replace(CONFIGS[kind], **entries)
    assert refused == CONTRADICTIONS.keys() - {"bigbird_pegasus"}


@pytest.mark.parametrize("kind", ["pegasus_x", "bigbird_pegasus"])
def test_the_copy_of_the_number_of_layers_alone_is_compared_with_the_default(kind):
    """Hugging Face's library, too, makes as many layers as `encoder_layers` says."""
    entries = CONFIGS[kind].to_dict()
    del entries["encoder_layers"]
    default = type(CONFIGS[kind]).encoder_layers
    for given in ({}, {"num_hidden_layers": default}):
        assert read(kind, {**entries, **given}).encoder_layers == default
    message = f"`num_hidden_layers` must be as `encoder_layers`.* Received: 3 and {default}"
    with pytest.raises(ValueError, match=message):
        read(kind, {**entries, "num_hidden_layers": 3})


def test_it_does_not_take_the_place_of_a_number_that_a_file_must_have():
    entries = CONFIGS["led"].to_dict()
    del entries["encoder_layers"]
    with pytest.raises(ValueError, match="The config has no `encoder_layers`"):
        read("led", {**entries, "num_hidden_layers": 3})


def read(kind, entries):
    return type(CONFIGS[kind]).from_json_string(json.dumps(entries), "some.json")


def test_longt5_reads_its_parts_where_they_agree():
    given = {"is_gated_act": True, "dense_act_fn": "gelu_new", "n_positions": 4096}
    entries = {**CONFIGS["longt5"].to_dict(), "feed_forward_proj": "gated-gelu", **given}
    assert longt5.LongT5Config.from_dict(entries).dense_act == "gelu_new"
    encoder = {**entries, "is_encoder_decoder": False}
    assert longt5.LongT5Config.from_dict(encoder).is_gated


# What published folders have besides sizes; Longformer's as version 2 of Hugging Face's wrote it.
PUBLISHED = {
    "longformer": {
        "attention_mode": "longformer",
        "do_sample": False,
        "eos_token_ids": 0,
        "finetuning_task": None,
        "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
        "ignore_attention_mask": False,
        "is_decoder": False,
        "label2id": {"LABEL_0": 0, "LABEL_1": 1},
        "length_penalty": 1.0,
        "max_length": 20,
        "num_beams": 1,
        "num_return_sequences": 1,
        "pruned_heads": {},
        "repetition_penalty": 1.0,
        "temperature": 1.0,
        "top_k": 50,
        "top_p": 1.0,
        "torchscript": False,
        "use_bfloat16": False,
        "xla_device": None,
    },
    "led": {
        "_num_labels": 3,
        "add_bias_logits": False,
        "add_final_layer_norm": False,
        "attention_mode": "longformer",
        "classif_dropout": 0.0,
        "classifier_dropout": 0.0,
        "decoder_layerdrop": 0.0,
        "early_stopping": True,
        "encoder_layerdrop": 0.0,
        "extra_pos_embeddings": 2,
        "force_bos_token_to_be_generated": False,
        "gradient_checkpointing": False,
        "length_penalty": 2.0,
        "max_length": 512,
        "min_length": 100,
        "no_repeat_ngram_size": 3,
        "normalize_before": False,
        "normalize_embedding": True,
        "num_beams": 4,
        "num_hidden_layers": leds.config().encoder_layers,
        "output_past": False,
        "prefix": " ",
        "scale_embedding": False,
        "static_position_embeddings": False,
        "task_specific_params": {"summarization": {"num_beams": 4}},
    },
    "longt5": {"n_positions": 4096, "output_past": True, "torch_dtype": "float32"},
    "pegasus_x": {
        "add_bias_logits": False,
        "add_final_layer_norm": True,
        "bos_token_id": 0,
        "decoder_layerdrop": 0.0,
        "encoder_layerdrop": 0.0,
        "extra_pos_embeddings": 1,
        "gradient_checkpointing": False,
        "length_penalty": 0.8,
        "max_length": 512,
        "normalize_before": True,
        "normalize_embedding": False,
        "num_beams": 8,
        "num_hidden_layers": pegasus_xs.config().encoder_layers,
        "static_position_embeddings": True,
    },
}


@pytest.mark.parametrize("kind", PUBLISHED)
def test_what_published_folders_have_is_read(kind):
    config = CONFIGS[kind]
    assert type(config).from_dict({**PUBLISHED[kind], **config.to_dict()}) == config


def test_a_berts_config_is_held_to_the_same_rule():
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size")
    entries = {**dict.fromkeys(sizes, 4), "num_attention_heads": 2, "max_position_embeddings": 8}
    of_longformer = ("attention_mode", "ignore_attention_mask")
    others = {name: x for name, x in PUBLISHED["longformer"].items() if name not in of_longformer}
    bert.check({**entries, **others, "pooler_type": "first"}, "some.json")
    for name, value in (("layer_norm_eps", math.nan), ("initializer_range", -1), ("eps", 1)):
        with pytest.raises(ValueError, match=f"some.json: .*{name}"):
            bert.check({**entries, name: value}, "some.json")


def test_a_barts_config_is_held_to_the_same_rule(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "bart", "residual_scale": 2.0}))
    with pytest.raises(ValueError, match="config.json: unknown settings, .*: residual_scale=2.0"):
        lifting_bart.lift_bart(tmp_path)


def test_settings_of_generate_in_a_config_are_read_as_such():
    known = {*generation_config._SETTINGS, *generation_config._NEW_TOKENS}
    known |= {*generation_config._OTHERS, *generation_config._WITHOUT_EFFECT}
    assert known >= hugging_face.GENERATION
