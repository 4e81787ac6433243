"""The models of text as pre-training calls them: their losses, and what is trained."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel.models.gmat import GmatConfig
from etcmodel.pretrain import config as pretrain_config
from etcmodel.pretrain import features as pretrain_features
from etcmodel.pretrain import masking, program, task
from etcmodel.pretrain import model as pretrain_model
from etcmodel.text import tokenization
from tests.models import etcs
from tests.models.longformer import small
from tests.pretrain import runs, windows

LENGTH = 16
SIZES = {
    "vocab_size": len(windows.VOCAB),
    **etcs.sizes(num_hidden_layers=2),
    **etcs.NO_DROPOUT,
    "initializer_range": 0.3,
}


def config_of(name, **changes):
    if name == "longformer":
        return small.config(**{**SIZES, "attention_window": 4, "pad_token_id": 1, **changes})
    sizes = {"chunk_size": 5, "position_period": 6, "num_position_quotients": 3}
    return GmatConfig(**{**SIZES, **sizes, "num_memory_tokens": 2, **changes})


def make_task(name, **options):
    values = {"windows": "text", "cpc_weight": 0.0, "long_seq_length": LENGTH, **options}
    return task.PretrainTask(
        pretrain_config.PretrainConfig(encoder_config=config_of(name), **values)
    )


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    """Two masked windows of which the second is half padding."""
    tokenizer = windows.make_tokenizer(tmp_path_factory.mktemp("vocab"))
    documents = [windows.document("a", 0, 1), windows.document("b", 2)]
    config = windows.input_config(windows="text", long_seq_length=LENGTH)
    features = pretrain_features.make_text_windows(documents, config, tokenizer).features
    assert [row["sentence_ids"].count(0) for row in features] == [16, 9]
    config = windows.masking_config(tokenizer, long_seq_length=LENGTH, cpc_share=0.0, mlm_share=0.4)
    return masking.mask_batch(windows.tensors(features), tf.range(2, dtype=tf.int64), 0, config)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", ["longformer", "gmat"])
def test_the_loss_is_that_of_the_head_s_logits_without_padding(name, batch):
    tf_keras.utils.set_random_seed(0)
    model = make_task(name).build_model()
    outputs = model(batch)
    head = pretrain_model.plain_masked_lm(model)
    rows = {key: value.numpy() for key, value in batch.items()}
    count = 0
    for row in range(2):
        size = (rows["sentence_ids"][row] >= 0).sum()
        logits = head(rows["long_token_ids"][row : row + 1, :size])[0]
        for slot in np.flatnonzero(rows["mlm_mask"][row]):
            position, label = rows["mlm_positions"][row, slot], rows["mlm_labels"][row, slot]
            found = logits[position].numpy().astype(np.float64)
            expected = np.log(np.exp(found).sum()) - found[label]
            assert float(outputs["mlm_loss"][row, slot]) == pytest.approx(expected, abs=2e-5)
            assert int(outputs["mlm_token_ids"][row, slot]) == found.argmax()
            count += 1
    assert count >= 6


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("longformer", ["position_embeddings/embedding_table"]),
        ("gmat", ["position_embeddings/embedding_table", "quotient_embeddings/embedding_table"]),
    ],
)
def test_positions_alone_may_be_trained(name, expected):
    positions = make_task(name, trainable="positions")
    model = positions.build_model()
    found = [variable.name for variable in positions.trained_variables(model)]
    assert ["/".join(x.removesuffix(":0").split("/")[-2:]) for x in found] == expected
    every = make_task(name).trained_variables(model)
    assert [id(x) for x in every] == [id(x) for x in model.trainable_variables]


def test_an_etc_of_absolute_positions_has_theirs():
    """As a lifted BERT is."""
    absolute = windows.etc_config(max_absolute_position_embeddings=32)
    config = pretrain_config.PretrainConfig(
        encoder_config=absolute, trainable="positions", long_seq_length=32, global_seq_length=8
    )
    etc_task = task.PretrainTask(config)
    found = [x.name for x in etc_task.trained_variables(etc_task.build_model())]
    assert sorted("/".join(x.removesuffix(":0").split("/")[-2:]) for x in found) == [
        "position_emb_lookup_global/embedding_table",
        "position_emb_lookup_long/embedding_table",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cpc_global_token_id": 2, "cpc_weight": 0.0}, "without contrastive .* Leave it out"),
        (
            {"cpc_global_token_id": 10**6},
            f"must be below the model's vocab_size={len(windows.VOCAB)}",
        ),
    ],
)
def test_the_global_token_of_masked_sentences_is_checked(options, message):
    with pytest.raises(
        ValueError, match=f"--cpc_global_token_id={options['cpc_global_token_id']}.*{message}"
    ):
        pretrain_config.PretrainConfig(encoder_config=windows.etc_config(), **options)


def test_models_of_text_mask_tokens_and_have_an_optimizer_and_etc_masks_whole_words():
    for name in ("longformer", "gmat", "big_bird", "modernbert"):
        found = pretrain_config.defaults_of(name)
        assert found["whole_words"] is False
        assert found["optimizer"] in ("adamw", "bert_adam") and found["learning_rate"] <= 1e-4
    assert pretrain_config.defaults_of("modernbert")["mlm_share"] == 0.3
    assert pretrain_config.defaults_of("etc") == {}
    config = pretrain_config.PretrainConfig(encoder_config=windows.etc_config())
    assert config.whole_words


def test_a_run_needs_something_to_learn_from():
    config = windows.etc_config()
    with pytest.raises(ValueError, match="--mlm_share=0 without contrastive .* nothing to learn"):
        pretrain_config.PretrainConfig(encoder_config=config, mlm_share=0, cpc_weight=0.0)
    assert pretrain_config.PretrainConfig(encoder_config=config, mlm_share=0).use_cpc


def test_etc_has_no_positions_to_train():
    config = pretrain_config.PretrainConfig(
        encoder_config=windows.etc_config(), trainable="positions"
    )
    etc_task = task.PretrainTask(config)
    with pytest.raises(ValueError, match="--trainable=positions: a model of type 'etc' has no"):
        etc_task.trained_variables(etc_task.build_model())


@pytest.mark.parametrize("copies", [True, False])
def test_projections_of_global_tokens_are_copied_if_wanted(tmp_path, copies):
    model = make_task("longformer").build_model()
    before = model.encoder.layers.attention_layers[0].inner_layer.query_global.linear.kernel.numpy()
    program.save(model, str(tmp_path), copy_local_to_global=copies)
    attention = model.encoder.layers.attention_layers[0].inner_layer
    wanted = attention.query.linear.kernel if copies else before
    np.testing.assert_array_equal(attention.query_global.linear.kernel, wanted)
    assert not np.array_equal(before, attention.query.linear.kernel)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_a_saved_folder_cuts_text_as_the_records_were(tmp_path, do_lower_case):
    """Also of other vocabularies: what is told stands in the folder."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ann", "Ann", "sang"]
    (tmp_path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    config = dataclasses.replace(windows.etc_config(), vocab_size=len(words))
    etc_task = task.PretrainTask(pretrain_config.PretrainConfig(encoder_config=config))
    tokenizer = tokenization.FullTokenizer(str(tmp_path / "vocab.txt"), do_lower_case)
    program.save(
        etc_task.build_model(), str(tmp_path / "saved"), tokenizer, do_lower_case=do_lower_case
    )
    processor = etcmodel.from_pretrained(tmp_path / "saved").processor
    assert processor.tokenizer.tokenize("Ann sang") == ["ann" if do_lower_case else "Ann", "sang"]


@pytest.mark.parametrize("segment", [0, 1])  # As in a model that began as a BERT, or did not.
def test_sentences_keep_the_global_token_that_they_were_pre_trained_with(tmp_path, segment):
    config = dataclasses.replace(
        windows.etc_config(), vocab_size=len(windows.VOCAB), default_segment_id=segment
    )
    etc_task = task.PretrainTask(pretrain_config.PretrainConfig(encoder_config=config))
    tokenizer = windows.make_tokenizer(tmp_path)
    program.save(etc_task.build_model(), str(tmp_path / "saved"), tokenizer, do_lower_case=False)
    (window,) = windows.make_windows([windows.document("a", 0, 2)], tokenizer).features
    processor = etcmodel.from_pretrained(tmp_path / "saved").processor
    batch = processor(windows.document("a", 0, 2))
    assert batch["global_token_ids"][0, 1:].tolist() == window["global_token_ids"][:2]
    assert set(batch["segment_ids"][0].tolist()) == {segment}
    assert processor.config.do_lower_case is False


def test_modes_of_a_run_tell_that_there_is_none(tmp_path, capsys):
    given = {"output_dir": tmp_path, "eval_data": tmp_path / "x"}
    for mode in ("evaluate", "save_pretrained"):
        with pytest.raises(SystemExit):
            runs.run_here(run_mode=mode, **given)
        told = f"There is no run in --output_dir={tmp_path} that has a config."
        assert told in capsys.readouterr().err
    with pytest.raises(SystemExit):
        runs.run_here(run_mode="train", **{**given, "train_data": tmp_path / "x"})
    assert "There is no run" not in capsys.readouterr().err
