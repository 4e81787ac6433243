"""What the options of tasks cannot be, and cannot be together, is told by its name."""

import dataclasses

import pytest

import etcmodel
from etcmodel.models import modeling
from etcmodel.pretrain.model import PretrainModel
from etcmodel.tasks.classification import config as classification
from etcmodel.tasks.hotpotqa import config as hotpotqa
from etcmodel.tasks.hotpotqa import features as hotpotqa_features
from etcmodel.tasks.hotpotqa.model import HotpotQaModel
from etcmodel.tasks.majority_tagging import config as majority_tagging
from etcmodel.tasks.nq import config as nq
from etcmodel.tasks.nq.model import NqModel
from etcmodel.tasks.numerical_reasoning import config as numerical_reasoning
from etcmodel.tasks.openkp import config as openkp
from etcmodel.tasks.openkp.model import OpenKpModel
from etcmodel.tasks.summarization import config as summarization
from etcmodel.tasks.triviaqa import config as triviaqa
from etcmodel.tasks.wikihop import config as wikihop
from etcmodel.tasks.wikihop.model import WikiHopModel
from tests.models.gmat import small as gmat
from tests.models.led import models as led
from tests.tasks import small_encoders
from tests.tasks.nq.page_windows import SETTINGS as NQ_SETTINGS

ETC = modeling.EtcConfig(vocab_size=9, hidden_size=8, num_attention_heads=2)
LONGFORMER = etcmodel.LongformerConfig(max_position_embeddings=4098)
OF_34_POSITIONS = etcmodel.LongformerConfig(
    vocab_size=9, max_position_embeddings=34, pad_token_id=1
)


def marked_features(**fields):
    """Of HotpotQA's first stage, which has no paragraphs left out."""
    return hotpotqa_features.FeatureMaker(hotpotqa.HotpotQAInputConfig(**fields), None)


def of_rates(name):
    message = rf"`{name}` must be -1, or in \[0, 1\). .*: %s"
    return [({name: rate}, message % rate) for rate in (-0.5, 1.0)]


# What is made; the fields that all of its cases have; each case's fields, and what is told of them.
CASES = [
    (
        hotpotqa.DecodingConfig,
        {},
        [
            ({"answer_encoding_method": "x"}, "`answer_encoding_method` must be"),
            (
                {"supporting_fact_threshold": 50},
                "`supporting_fact_threshold` must be between 0 and 1",
            ),
            ({"max_answer_length": 0}, "`max_answer_length` must be at least 1"),
        ],
    ),
    (
        hotpotqa.HotpotQAInputConfig,
        {},
        [
            ({"long_seq_length": 1}, "`long_seq_length` must be at least 2"),
            ({"global_seq_length": 0}, "`global_seq_length` must be at least 2"),
            ({"answer_encoding_method": "x"}, "must be one of .'span', 'bio'.. Received: 'x'"),
            ({"answer_types_map": {"span": 0}}, "`answer_types_map` must map"),
            ({"first_stage": "file"}, "--first_stage is for --evidence_as=marks"),
            ({"paragraph_threshold": 0.5}, "--paragraph_threshold is for --evidence_as=marks"),
        ],
    ),
    (
        marked_features,
        {"evidence_as": "marks", "long_seq_length": 60},
        [({"first_stage": "file"}, "--first_stage is for the second stage")],
    ),
    (
        hotpotqa.HotpotQaConfig,
        {},
        [
            ({"encoder_config": LONGFORMER}, "'longformer'. Or preprocess with --evidence_as=mark"),
            (
                {"encoder_config": ETC, "evidence_as": "marks"},
                "'etc', .* Or preprocess with --evidence_as=global",
            ),
            (
                {"encoder_config": LONGFORMER, "evidence_as": "marks", "flat_sequence": True},
                "--flat_sequence is for --evidence_as=global",
            ),
        ],
    ),
    (
        nq.DecodingConfig,
        {},
        [
            ({"span_selection_method": "best"}, "`span_selection_method` must be one of"),
            ({"max_short_answer_len": 0}, "`max_short_answer_len` must be at least 1"),
        ],
    ),
    (
        nq.NqInputConfig,
        NQ_SETTINGS,
        [
            ({"stride": 0}, "`stride` must be at least 1"),
            ({"long_seq_length": 11}, "`long_seq_length` must leave room"),
            ({"global_seq_length": 10}, "`global_seq_length` must leave room"),
            ({"fixed_blocks": True, "fixed_block_size": 2}, "at least 20, the number of blocks"),
            ({"include_unknown_rate": -0.1}, "`include_unknown_rate` must be at least 0"),
            ({"global_token_types": (0, 1)}, "`global_token_types` must be three"),
        ],
    ),
    (
        nq.NqConfig,
        {"encoder_config": small_encoders.config("longformer", 120, 5000)},
        [({"spm_model_file": "a.model"}, "--spm_model_file=a.model: .*not those of 'longfor")],
    ),
    (
        openkp.OpenKpInputConfig,
        {},
        [({"fixed_block_len": 0}, "`fixed_block_len` must be at least 1")],
    ),
    (
        openkp.OpenKpConfig,
        {"encoder_config": ETC},
        [({"eval_fraction_of_removed_examples": 1.5}, r"must be in \[0, 1\). Received: 1.5")],
    ),
    (
        openkp.VisualConfig,
        {},
        [
            ({"ranges": {"widths": (0, 1)}}, "`ranges` must have the keys"),
            ({"indicators_to_cross": ()}, "must name one or more of"),
            ({"indicators_to_cross": ("bold",)}, r"Received: \['bold'\]"),
            (
                {"indicators_to_cross": ("global_bold_indicator",) * 2},
                "must not name an indicator twi",
            ),
            ({"num_extra_dense_layers": -1}, "must not be negative"),
        ],
    ),
    (
        wikihop.WikiHopInputConfig,
        {"global_seq_length": 24},
        [
            ({"long_seq_length": 0}, "`long_seq_length` must be at least 2. Received: 0"),
            ({"max_num_sentences": -1}, "`max_num_sentences` must be at least 0"),
            ({"sentence_splitter": "none"}, "`sentence_splitter` must be one of"),
        ],
    ),
    (
        wikihop.WikiHopConfig,
        {"encoder_config": ETC},
        [
            (
                {"flat_sequence": True, "query_ignore_hard_g2l": True},
                "Leave --query_ignore_hard_g2l out",
            ),
            ({"label_smoothing": 1.0}, r"`label_smoothing` must be in \[0, 1\)"),
            *of_rates("hidden_dropout_prob"),
            *of_rates("attention_probs_dropout_prob"),
        ],
    ),
    (
        wikihop.WikiHopConfig,
        {"encoder_config": LONGFORMER},
        [
            ({}, "'longformer'. Or preprocess with --candidates_as=marks"),
            (
                {"candidates_as": "marks", "flat_sequence": True},
                "--flat_sequence is for --candidates_as=global",
            ),
        ],
    ),
    (
        classification.ClassificationInputConfig,
        {"labels": ("bad", "good")},
        [
            ({"labels": ("a", "a")}, "`labels` must be different"),
            ({"labels": ("a", "")}, "not empty"),
            ({"problem_type": classification.REGRESSION}, "must be empty for a regression"),
            ({"label_separator": ""}, "`label_separator` must not be empty"),
        ],
    ),
    *(
        (
            config_class,
            {"encoder_config": OF_34_POSITIONS},
            [({"long_seq_length": 33}, "`long_seq_length` must be at most .* 32. Received: 33")],
        )
        for config_class in (triviaqa.TriviaQaConfig, classification.ClassificationConfig)
    ),
    *(
        (
            config_class,
            {"encoder_config": gmat.config(), "long_seq_length": 9},
            [
                ({"encoder_config": ETC}, "needs a model config of type 'gmat'. .* type 'etc'"),
                ({"long_seq_length": 129}, "at most the model's number of positions, 128"),
                *own,
            ],
        )
        for config_class, own in (
            (majority_tagging.MajorityConfig, [({"pairs": 0}, "`pairs` must be at least 1")]),
            (
                numerical_reasoning.NumericalConfig,
                [({"max_answer_length": 2}, "`max_answer_length` must be at least 3")],
            ),
        )
    ),
    (
        summarization.SummarizationConfig,
        {"encoder_config": led.config(), "long_seq_length": 12, "target_length": 6},
        [
            ({"long_seq_length": 61}, "`max_encoder_position_embeddings`, 60. Received: 61"),
            ({"target_length": 21}, "`max_decoder_position_embeddings`, 20. Received: 21"),
            ({"eval_gold": "gold.json"}, "`eval_gold` must be left out"),
            ({"split_punctuation": True}, "`split_punctuation` must be left out"),
            (
                {"min_new_tokens": 5, "max_new_tokens": 4},
                "`min_new_tokens` must be at most .* Received: 5, 4",
            ),
        ],
    ),
]
ROWS = [
    pytest.param(make, {**common, **fields}, message, id=f"{make.__name__}: {message[:30]}")
    for make, common, cases in CASES
    for fields, message in cases
]


@pytest.mark.parametrize(("make", "fields", "message"), ROWS)
def test_what_cannot_be_is_refused(make, fields, message):
    with pytest.raises(ValueError, match=message):
        make(**fields)


@pytest.mark.parametrize(
    "config_class", [triviaqa.TriviaQaConfig, classification.ClassificationConfig]
)
def test_inputs_may_have_as_many_tokens_as_the_model_has_positions(config_class):
    made = config_class(encoder_config=OF_34_POSITIONS, long_seq_length=32)
    assert made.long_seq_length == 32


MODELS = (HotpotQaModel, NqModel, OpenKpModel, PretrainModel, WikiHopModel)
OWN = modeling.EtcConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)


@pytest.mark.parametrize("model_class", MODELS, ids=lambda cls: cls.__name__)
def test_later_changes_do_not_reach_the_model(model_class):
    config = dataclasses.replace(OWN)
    model = model_class(config)
    config.hidden_size, config.relative_pos_max_distance = 16, 3
    assert model.encoder_config == model.etc_model.config == OWN
