"""What a program takes from the folder that is given as --init_checkpoint."""

import json
import shutil

import pytest

import etcmodel
from etcmodel.finetuning import model_folder
from etcmodel.models.config import EtcConfig
from etcmodel.text import byte_bpe, vocabulary_files
from etcmodel.training import run_directory
from tests.checkpoints import berts
from tests.models.random_weights import built
from tests.reference import cases
from tests.tasks.classification.raw_texts import VOCAB

ETC = {"vocab_size": len(VOCAB), "hidden_size": 8, "num_hidden_layers": 1, "local_radius": 4}
ETC |= {"num_attention_heads": 2, "intermediate_size": 8}


def hugging_face(folder):
    return berts.write_folder(folder, VOCAB)


def roberta(folder):
    return berts.write_folder(folder, VOCAB, "roberta")


def original(folder):
    berts.write_folder(folder, VOCAB)
    entries = json.loads((folder / "config.json").read_text())
    del entries["model_type"]
    (folder / "bert_config.json").write_text(json.dumps(entries))
    for name in ("config.json", "model.safetensors"):
        (folder / name).unlink()
    values = berts.original_weights(berts.hugging_face_weights())
    berts.write_released(folder, values, "bert_model.ckpt")
    return folder


class TestConfig:
    @pytest.mark.parametrize("write", [hugging_face, roberta, original])
    def test_a_bert_is_lifted_with_the_lengths(self, write, tmp_path):
        found = model_folder.encoder_config(str(write(tmp_path / "bert")), 24, 30)
        assert found == EtcConfig(
            **berts.SIZES,
            vocab_size=berts.VOCAB,
            hidden_act="gelu" if write is original else "gelu_exact",
            # As many neighbors as a BERT's input has tokens, and positions for both inputs.
            local_radius=berts.POSITIONS // 2,
            max_absolute_position_embeddings=30,
            # The paper's base model has so many token types and labels.
            segment_vocab_size=16,
            relative_pos_max_distance=12,
            relative_vocab_size=32,
            share_qkv_projections=True,
            share_att_output_projection=True,
            pad_token_id=int(write is roberta),
            global_token_id=int(write is not roberta),
            default_segment_id=0,
            global_block_length=0,
        )

    def test_within_the_length_of_a_bert_all_is_seen(self, tmp_path):
        bert = str(hugging_face(tmp_path / "bert"))
        found = model_folder.encoder_config(bert, berts.POSITIONS, 2)
        assert (found.local_radius, found.max_absolute_position_embeddings) == (6, 6)

    def test_another_model_is_as_it_is(self, tmp_path):
        model = etcmodel.EtcModel(EtcConfig(**ETC))
        model.build(None)
        etcmodel.save_pretrained(model, tmp_path / "ours")
        assert model_folder.encoder_config(str(tmp_path / "ours"), 24, 6) == EtcConfig(**ETC)
        authors = tmp_path / "etc_base"
        authors.mkdir()
        (authors / "etc_config.json").write_text(json.dumps(ETC))
        weights = etcmodel.checkpoints.release_names(model)
        berts.write_released(authors, {name: x.numpy() for name, x in weights.items()})
        assert model_folder.encoder_config(str(authors), 24, 6) == EtcConfig(**ETC)

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ("{}/gone", "There is no directory '{}/gone'"),
            ("{}", "'{}' has no etc_config.json or config.json"),
            ("{}/x.ckpt", "--init_checkpoint={}/x.ckpt: the file of a checkpoint does not tell"),
        ],
    )
    def test_what_is_no_folder_of_a_model_is_named(self, path, message, tmp_path):
        (tmp_path / "x.ckpt.index").touch()
        with pytest.raises(ValueError, match=message.format(tmp_path)):
            model_folder.encoder_config(path.format(tmp_path), 24, 6)


class TestVocabulary:
    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ({}, True),
            ({"tokenizer_config.json": '{"do_lower_case": false}'}, False),
            ({"tokenizer_config.json": "{}"}, True),
            ({"processor_config.json": '{"do_lower_case": false}'}, False),
            ({"vocab.txt": "[PAD]\n[UNK]\nThe\nthe"}, False),  # Of an original BERT.
        ],
    )
    def test_the_folder_tells_whether_text_is_lower_cased(self, files, expected, tmp_path):
        bert = hugging_face(tmp_path / "bert")
        for name, text in files.items():
            (bert / name).write_text(text)
        found = model_folder.vocabulary(str(bert), {}, {})
        assert found == {"vocab_file": str(bert / "vocab.txt"), "do_lower_case": expected}

    def test_what_is_given_and_the_same_is_no_contradiction(self, tmp_path):
        bert = str(hugging_face(tmp_path / "bert"))
        same = tmp_path / "same.txt"
        same.write_text("\n".join(VOCAB))
        found = model_folder.vocabulary(bert, {"do_lower_case": True}, {})
        assert found == {"vocab_file": f"{bert}/vocab.txt", "do_lower_case": True}
        # Who gives the vocabulary says what becomes of text, too.
        given = {"vocab_file": str(same), "do_lower_case": False}
        assert model_folder.vocabulary(bert, given, {}) == {}

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"vocab_file": "{}/other.txt"},
                "--vocab_file={}/other.txt: the model in '{}/bert' has another vocabulary, "
                "{}/bert/vocab.txt. Leave the flag out.",
            ),
            (
                {"do_lower_case": False},
                "--do_lower_case=false: the vocabulary of the model in '{}/bert' was made with "
                "--do_lower_case=true. Leave the flag out.",
            ),
        ],
    )
    def test_what_contradicts_the_folder_is_refused(self, given, message, tmp_path):
        bert = hugging_face(tmp_path / "bert")
        (tmp_path / "other.txt").write_text("[PAD]\nother")
        given = {x: v.format(tmp_path) if isinstance(v, str) else v for x, v in given.items()}
        with pytest.raises(ValueError) as refused:
            model_folder.vocabulary(str(bert), given, {})
        assert str(refused.value) == message.format(*[tmp_path] * 3)

    def test_without_a_folder_or_a_vocabulary_there_is_none(self, tmp_path):
        bert = hugging_face(tmp_path / "bert")
        (bert / "vocab.txt").unlink()
        for path in (str(bert), str(tmp_path / "gone"), None):
            assert model_folder.vocabulary(path, {"vocab_file": "mine.txt"}, {}) == {}

    def test_records_of_the_other_case_are_refused(self, tmp_path):
        bert = hugging_face(tmp_path / "bert")
        settings = {"x.config.json": {"tokenizer": "wordpiece", "do_lower_case": False}}
        with pytest.raises(ValueError, match="x.config.json: the records were made with --do_low"):
            model_folder.vocabulary(str(bert), {}, settings)
        # Who gives the vocabulary says what becomes of text, too.
        given = {"vocab_file": str(bert / "vocab.txt")}
        assert model_folder.vocabulary(str(bert), given, settings) == {}

    def test_of_two_forms_of_a_vocabulary_that_of_the_records_is_taken(self, tmp_path):
        source = cases.topic_folder("longformer") / "tokenizer"
        for name in ("vocab.json", "merges.txt"):
            shutil.copy(source / name, tmp_path / name)
        tokenizer = byte_bpe.ByteLevelTokenizer.of_file(str(tmp_path / "vocab.json"))
        (tmp_path / "tokenizer.json").write_text(tokenizer._tokenizer.to_str())
        for name in ("tokenizer.json", "vocab.json"):
            path = str(tmp_path / name)
            settings = {"x.config.json": {"vocab_sha256": vocabulary_files.sha256(path)}}
            found = model_folder.vocabulary(str(tmp_path), {}, settings)
            assert found == {"vocab_file": path}
            assert model_folder.vocabulary(str(tmp_path), {"vocab_file": path}, {}) == {}


def run_with_labels(folder, *labels):
    """A run, and its best checkpoint, of which only the description is there."""
    (folder / "best").mkdir(parents=True)
    run_directory.claim_directory(str(folder), {"task": {"labels": labels}})
    return [folder, folder / "best", folder / "ckpt-3", folder / "best" / "ckpt-2"]


class TestOrderOfLabels:
    def test_a_head_with_the_labels_in_another_order_is_refused(self, tmp_path):
        for path in map(str, run_with_labels(tmp_path / "run", "low", "normal", "high")):
            model_folder.check_order_of_labels(path, ("low", "normal", "high"))
            with pytest.raises(ValueError) as refused:
                model_folder.check_order_of_labels(path, ("high", "low", "normal"))
            assert str(refused.value) == (
                f"--init_checkpoint={path}: its labels are in another order than those of the "
                "records, high,low,normal. Make these again, with --labels=low,normal,high"
            )

    def test_so_is_that_of_a_saved_classifier(self, tmp_path):
        encoder = EtcConfig(**ETC)
        model = etcmodel.EtcForSequenceClassification(encoder, labels=["pos", "neg"])
        model.save_pretrained(tmp_path / "saved")
        with pytest.raises(ValueError, match="of the records, neg,pos. .* --labels=pos,neg$"):
            model_folder.check_order_of_labels(str(tmp_path / "saved"), ("neg", "pos"))

    def test_a_folder_within_that_of_a_run_has_its_own_labels_or_none(self, tmp_path):
        run_with_labels(tmp_path / "run", "low", "high")
        encoder = EtcConfig(**ETC)
        base = tmp_path / "run" / "base"
        etcmodel.save_pretrained(built(etcmodel.EtcModel(encoder)), base)
        model_folder.check_order_of_labels(str(base), ("high", "low"))
        head = etcmodel.EtcForSequenceClassification(encoder, labels=["high", "low"])
        head.save_pretrained(tmp_path / "run" / "head")
        model_folder.check_order_of_labels(str(tmp_path / "run" / "head"), ("high", "low"))
        with pytest.raises(ValueError, match="--labels=high,low$"):
            model_folder.check_order_of_labels(str(tmp_path / "run" / "head"), ("low", "high"))

    def test_a_head_that_is_not_known_has_no_labels(self, tmp_path):
        model = etcmodel.EtcForSequenceClassification(EtcConfig(**ETC), labels=["pos", "neg"])
        model.save_pretrained(tmp_path / "saved")
        path = tmp_path / "saved" / "head_config.json"
        path.write_text(path.read_text().replace("sequence_classification", "my_own"))
        model_folder.check_order_of_labels(str(tmp_path / "saved"), ("neg", "pos"))

    def test_other_labels_and_models_without_any_may_begin_a_run(self, tmp_path):
        bert = str(hugging_face(tmp_path / "bert"))
        run = str(run_with_labels(tmp_path / "run", "low", "high")[0])
        for path in (bert, run, str(tmp_path / "gone"), None):
            model_folder.check_order_of_labels(path, ("neg", "pos"))
        model_folder.check_order_of_labels(run, ())
