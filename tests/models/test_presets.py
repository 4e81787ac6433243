"""Configs by name: the paper's have the paper's sizes (section 4.1; tables 2 and 8).

Those of other checkpoints have the numbers of parameters that are published, or follow from the
shapes in their files.
"""

import pytest

from etcmodel.checkpoints import coverage
from etcmodel.models import EtcForTokenClassification, modeling, presets

MILLION = 1_000_000
SMALL = {"num_hidden_layers": 1, "vocab_size": 100, "hidden_size": 48, "intermediate_size": 80}


def num_parameters(config):
    """Trainable parameters, by the shapes in the paper."""
    hidden, heads = config.hidden_size, config.num_attention_heads
    norm, dense = 2 * hidden, hidden * hidden + hidden
    embeddings = hidden * (config.vocab_size + config.segment_vocab_size) + 2 * norm
    queries, keys_and_values = (1, 2) if config.share_qkv_projections else (2, 8)
    outputs = 1 if config.share_att_output_projection else 2
    labels = 2 * config.relative_vocab_size * (hidden + heads)
    intermediate = config.intermediate_size
    feed_forward = 2 * hidden * intermediate + intermediate + hidden + norm
    attention = (queries + keys_and_values + outputs) * dense + labels + 2 * norm
    return embeddings + config.num_hidden_layers * (attention + feed_forward)


@pytest.mark.parametrize("name", sorted(presets.PRESETS))
def test_a_built_model_has_the_number_of_parameters_counted_here(name):
    config = presets.preset(name, **SMALL)
    model = modeling.EtcModel(config)
    model.build(None)
    assert model.count_params() == num_parameters(config)


@pytest.mark.parametrize(
    "name, millions",
    [("etc_base_shared", 109), ("etc_base", 166), ("etc_base_2x_relative_vocab", 166)],
)
def test_base_models_have_the_papers_number_of_parameters(name, millions):
    assert round(num_parameters(presets.preset(name)) / MILLION) == millions


def test_the_large_model_has_the_papers_number_of_parameters():
    """558.57 million; the paper says 558. With BERT's vocabulary 538.35, where it says 539."""
    assert num_parameters(presets.preset("etc_large")) // MILLION == 558
    assert num_parameters(presets.preset("etc_large_bert_vocab")) // MILLION == 538


def test_a_doubled_relative_vocabulary_adds_600_thousand():
    """Table 2, note."""
    base, doubled = (
        num_parameters(presets.preset(name)) for name in ("etc_base", "etc_base_2x_relative_vocab")
    )
    assert round((doubled - base) / 100_000) == 6


@pytest.mark.parametrize("name", sorted(presets.PRESETS))
def test_every_preset_is_a_config_that_can_be(name):
    presets.preset(name).check()


PARAMETERS = {
    "allenai/led-base-16384": 161_844_480,
    "allenai/led-large-16384": 459_801_600,
    "allenai/longformer-base-4096": 148_659_456,
    "allenai/longformer-large-4096": 434_600_960,
    "answerdotai/ModernBERT-base": 149_014_272,
    "answerdotai/ModernBERT-large": 394_781_696,
    "google/bigbird-pegasus-large-arxiv": 576_891_904,
    "google/bigbird-roberta-base": 127_468_800,
    "google/bigbird-roberta-large": 359_123_968,
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.slow] * ("-large" in x)) for x in PARAMETERS],
)
def test_a_checkpoints_config_has_as_many_parameters_as_its_file(name):
    assert coverage.num_parameters(presets.preset(name)) == PARAMETERS[name]


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("google/pegasus-x-base", 272),  # Phang et al. 2022, table 6.
        pytest.param("google/pegasus-x-large", 568, marks=pytest.mark.slow),
    ],
)
def test_pegasus_x_has_the_papers_number_of_parameters(name, millions):
    assert coverage.num_parameters(presets.preset(name)) // MILLION == millions


@pytest.mark.parametrize("name", sorted(presets.CHECKPOINTS))
def test_every_checkpoints_config_is_one_of_its_system(name):
    config = presets.preset(name)
    assert config.to_dict() == type(config).from_dict(config.to_dict()).to_dict()
    assert presets.preset(name, vocab_size=60000).vocab_size == 60000


def test_changes_reach_the_config_and_not_the_preset():
    config = presets.preset("etc_base", use_hard_g2l_mask=False)
    config.hidden_size = 4
    assert not config.use_hard_g2l_mask
    assert presets.PRESETS["etc_base"].use_hard_g2l_mask
    assert presets.preset("etc_base").hidden_size == 768


@pytest.mark.parametrize("name", sorted(presets.PRESETS))
def test_the_hard_mask_is_on_but_in_the_ablations_without_it(name):
    """Section 4.2: "our default configuration … hard g2l masking"; table 3's "no hard g2l"."""
    config = presets.preset(name)
    assert config.use_hard_g2l_mask == ("no_hard_g2l" not in name)
    with_mask = presets.preset(name.removesuffix("_no_hard_g2l"))
    assert with_mask == presets.preset(name, use_hard_g2l_mask=True)


def test_global_tokens_of_a_preset_need_links_or_no_mask():
    small = {**SMALL, "num_attention_heads": 4}
    ids = {"token_ids": [[7, 8, 9]], "global_token_ids": [[1, 1]]}
    model = EtcForTokenClassification(presets.preset("etc_base", **small), num_labels=2)
    with pytest.raises(ValueError, match=r"`links` must be given .* use_hard_g2l_mask=False"):
        model(ids)
    model({**ids, "links": [[0, 0, 1]]})
    EtcForTokenClassification(presets.preset("etc_base_no_hard_g2l", **small), num_labels=2)(ids)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"must be one of \[.*'etc_base', .*Received: 'etc_huge'"):
        presets.preset("etc_huge")


@pytest.mark.parametrize("name", ["etc_base", *sorted(presets.CHECKPOINTS)])
def test_changes_of_unknown_or_wrong_entries_are_named(name):
    with pytest.raises(ValueError, match="A config of type .* has no `foo`"):
        presets.preset(name, foo=1)
    with pytest.raises(ValueError, match="`vocab_size` must be of type int"):
        presets.preset(name, vocab_size="many").check()
