"""A model's processor: kept with it, given back with it, and refused if it is another model's."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel.checkpoints import bert, processors
from etcmodel.models import encoders, gmat, heads, longformer
from etcmodel.text.processor import EtcProcessor
from tests.checkpoints import berts
from tests.models import head_cases, text_cases
from tests.models.modernbert import small as modernbert

GRAPH = text_cases.EXAMPLES["graph"]
NAMES = ("father", "sister")


@pytest.fixture
def processor(tmp_path):
    return text_cases.processor(tmp_path, relation_names=NAMES, max_long_len=50)


def make_head(processor, relation_names=NAMES):
    tf_keras.utils.set_random_seed(0)
    config = text_cases.config(processor)
    return heads.EtcForSequenceClassification(config, relation_names=relation_names)


def test_model_and_processor_come_back_from_one_folder(tmp_path, processor):
    folder = str(tmp_path / "model")
    model = make_head(processor)
    model.save_pretrained(folder, processor)
    assert sorted(os.listdir(folder)) == [
        "config.json",
        "head_config.json",
        "model.safetensors",
        "processor_config.json",
        "vocab.txt",
    ]
    loaded = etcmodel.from_pretrained(folder)
    assert type(loaded.processor) is EtcProcessor and loaded.processor.config == processor.config
    assert loaded.relation_names == NAMES
    np.testing.assert_array_equal(loaded(loaded.processor(GRAPH)), model(processor(GRAPH)))
    loaded.save_pretrained(str(tmp_path / "again"))
    assert etcmodel.from_pretrained(tmp_path / "again").processor.config == processor.config
    loaded.save_pretrained(folder)  # In the place of what its vocabulary was read from.
    assert etcmodel.from_pretrained(folder).processor.vocabulary == processor.vocabulary


def test_they_come_from_a_bucket(tmp_path, processor):
    model = make_head(processor)
    model.save_pretrained(tmp_path / "model", processor)
    remote = f"ram://{tmp_path.name}"
    tf.io.gfile.makedirs(remote)
    for name in os.listdir(tmp_path / "model"):
        tf.io.gfile.copy(str(tmp_path / "model" / name), f"{remote}/{name}")
    loaded = etcmodel.from_pretrained(remote)
    np.testing.assert_array_equal(loaded(loaded.processor(GRAPH)), model(processor(GRAPH)))
    loaded.save_pretrained(tmp_path / "again")
    with pytest.raises(ValueError, match="written to local disks only: write there, and copy the"):
        loaded.save_pretrained(f"{remote}-again")


def test_other_relations_than_the_models_are_refused(tmp_path, processor):
    line = (
        r"The model's `relation_names` are \['sister', 'father'\], the processor's \['father', "
        r"'sister'\]; they must be the same"
    )
    model = make_head(processor, NAMES[::-1])
    with pytest.raises(ValueError, match=line):
        model.save_pretrained(tmp_path / "model", processor)
    model.save_pretrained(tmp_path / "model")
    processor.save_pretrained(tmp_path / "model")
    with pytest.raises(ValueError, match=line):
        etcmodel.from_pretrained(tmp_path / "model")


@pytest.mark.parametrize("kind", ["gmat", "longformer"])
def test_a_model_of_one_text_keeps_it_too(tmp_path, processor, kind):
    sizes = {"vocab_size": len(processor.vocabulary), "hidden_size": 8, "num_hidden_layers": 1}
    sizes |= {"num_attention_heads": 2, "intermediate_size": 8}
    if kind == "gmat":
        config = gmat.GmatConfig(**sizes, chunk_size=4, num_memory_tokens=2)
        model = gmat.GmatForSequenceClassification(config)
    else:
        config = longformer.LongformerConfig(**sizes, attention_window=4, type_vocab_size=2)
        model = longformer.LongformerForSequenceClassification(config)
    model.processor = processor
    model.save_pretrained(tmp_path / "model")
    loaded = etcmodel.from_pretrained(tmp_path / "model")
    assert type(loaded.processor) is EtcProcessor and loaded.processor.config == processor.config


def test_relations_that_are_overridden_are_the_processors_too(tmp_path, processor):
    make_head(processor).save_pretrained(tmp_path / "model", processor)
    model = etcmodel.from_pretrained(tmp_path / "model", relation_names=["sister"])
    assert model.relation_names == model.processor.relation_names == ("sister",)


def test_a_fresh_head_has_the_relations_of_the_processor_that_is_there(tmp_path, processor):
    encoder = encoders.build_encoder(text_cases.config(processor))
    encoder.save_pretrained(tmp_path / "encoder", processor)
    model = heads.EtcForTokenClassification.from_pretrained(tmp_path / "encoder")
    assert model.relation_names == NAMES
    assert model(model.processor(GRAPH)).shape[0] == 1


def test_a_vocabularys_processor_has_the_segment_and_the_global_token_of_the_model():
    for config, expected in (
        (etcmodel.EtcConfig(40), {"segment_id": 1, "global_token_id": 1}),
        (etcmodel.EtcConfig(40, segment_vocab_size=1, default_segment_id=0), {"segment_id": 0}),
        (etcmodel.EtcConfig(40, default_segment_id=0), {}),
        (modernbert.etc_config(), {"global_token_id": 2}),
        (modernbert.etc_config(segment_vocab_size=1), {"segment_id": 0, "global_token_id": 2}),
        (longformer.LongformerConfig(), {}),
    ):
        assert processors.trained_settings(config) == expected


@pytest.mark.parametrize("is_roberta", [False, True])
def test_a_robertas_question_ends_with_two_separators(is_roberta):
    sizes = {"vocab_size": 9, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    sizes |= {"intermediate_size": 4, "max_position_embeddings": 9, "type_vocab_size": 1}
    config = bert.etc_config(sizes, is_roberta=is_roberta, is_hugging_face=True, source="here")
    found = processors.trained_settings(config).get("question_separators", 1)
    assert found == 1 + is_roberta


def test_relations_beyond_the_models_reach_are_refused(tmp_path, processor):
    settings = {"relation_names": NAMES, "long_relation_names": ["sister"]}
    wide, near = (
        EtcProcessor(processor.tokenizer, long_radius=radius, **settings) for radius in (7, 6)
    )
    line = "The processor's `long_radius`, 7, must be at most the model's `local_radius`, 6"
    with pytest.raises(ValueError, match=line):
        make_head(processor).save_pretrained(tmp_path / "model", wide)
    model = make_head(processor)
    model.save_pretrained(tmp_path / "model", near)
    batch = etcmodel.from_pretrained(tmp_path / "model").processor(GRAPH)
    assert batch["long_edges/sister"].shape[1] > 0
    without = {name: array for name, array in batch.items() if name != "long_edges/sister"}
    assert np.abs(model(batch) - model(without)).max() > 1e-6


def test_more_tokens_than_the_models_are_refused(processor):
    model = heads.EtcForTokenClassification(
        head_cases.config(relative_vocab_size=20), relation_names=NAMES
    )
    line = r"vocabulary has 109 tokens, more than the model's `vocab_size`, 30"
    with pytest.raises(ValueError, match=line):
        model.save_pretrained("unused", processor)


def test_damaged_settings_of_a_processor_are_named(tmp_path, processor):
    model = make_head(processor)
    model.save_pretrained(tmp_path / "model", processor)
    (tmp_path / "model" / "processor_config.json").write_text('{"max_long": 5}')
    with pytest.raises(ValueError, match="processor_config.json: unknown settings .* max_long"):
        etcmodel.from_pretrained(tmp_path / "model")


class TestOfAVocabularyAlone:
    def test_it_reads_as_much_as_the_model(self, tmp_path):
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "The", "river"]
        folder = berts.write_folder(tmp_path / "bert", words)
        (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
        model = etcmodel.from_pretrained(folder)
        batch = model.processor("The river " * 100)
        assert batch["token_ids"][0].tolist() == [2, *[4, 5] * 23, 3]  # 8 times 6 positions.
        alone = model.embed({"token_ids": batch["token_ids"][:, :6]})
        assert np.isfinite(alone).all() and np.isfinite(model.embed(batch)).all()
        texts = ["The river", "river"]
        np.testing.assert_array_equal(model.embed(texts), model.embed(model.processor(texts)))
        model.save_pretrained(tmp_path / "long")
        processor, model.processor = model.processor, None
        with pytest.raises(ValueError, match="Texts need a processor: set `model.processor`"):
            model.embed(texts)
        model.processor = processor
        loaded = etcmodel.from_pretrained(tmp_path / "long")
        assert loaded.processor.config == model.processor.config
        np.testing.assert_array_equal(loaded.embed(batch), model.embed(batch))

    def test_nothing_of_an_older_one_is_read_in_its_place(self, tmp_path):
        """The older one has settings of its own, and files of another kind of vocabulary."""
        processor = text_cases.processor(tmp_path, max_long_len=50, relation_names=())
        model = make_head(processor, relation_names=())
        model.save_pretrained(tmp_path / "model", processor)
        (tmp_path / "model" / "spiece.model").write_bytes(b"older")
        newer = processors.VocabularyFiles(
            {
                "vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\nHello\n",
                "tokenizer_config.json": b'{"do_lower_case": false}',
            }
        )
        model.save_pretrained(tmp_path / "model", newer)
        found = {path.name for path in (tmp_path / "model").iterdir()}
        assert not found & {"spiece.model", "processor_config.json"}
        loaded = etcmodel.from_pretrained(tmp_path / "model").processor
        assert loaded.tokenizer.tokenize("Hello") == ["Hello"]

    def test_one_without_a_vocabulary_leaves_that_which_is_there(self, tmp_path):
        class Own:
            def save_pretrained(self, directory):
                with open(os.path.join(directory, "own.json"), "w") as file:
                    file.write("{}")

        model = make_head(text_cases.processor(tmp_path, relation_names=()), relation_names=())
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "vocab.txt").write_text("[PAD]")
        model.save_pretrained(tmp_path / "model", Own())
        assert {"own.json", "vocab.txt"} < {path.name for path in (tmp_path / "model").iterdir()}

    def test_one_that_makes_no_processor_is_kept_and_says_so(self, tmp_path):
        folder = berts.write_folder(tmp_path / "bert", ["[PAD]", "[UNK]"])
        (folder / "merges.txt").write_text("#version: 0.2\n")
        model = etcmodel.from_pretrained(folder)
        with pytest.raises(
            ValueError, match=r"has no processor: .* lacks '\[CLS\]'.* Set `model.p"
        ):
            model.processor("The river")
        model.save_pretrained(tmp_path / "again")
        for name in ("vocab.txt", "merges.txt"):
            assert (tmp_path / "again" / name).read_text() == (folder / name).read_text()
