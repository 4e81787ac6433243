"""What the predictor asks of an export, and of what it is told to answer from."""

import json
import os

import pytest

from etcmodel.models import encoders
from etcmodel.models.longformer.config import LongformerConfig
from etcmodel.tasks.classification import config as classification_config
from etcmodel.tasks.triviaqa import config as triviaqa_config
from etcmodel.tasks.triviaqa import predict
from tests.tasks.triviaqa.questions import VOCAB, write_vocab


class Folder:
    """The files of an export without its model."""

    def __init__(self, directory):
        self.directory = directory

    def asset(self, name):
        path = os.path.join(self.directory, name)
        return path if os.path.exists(path) else None


class Predictor(predict.TriviaQaPredictor):
    runner_class = Folder


@pytest.fixture
def export(tmp_path):
    """A folder that was exported with another machine's `--evidence_dir`."""
    encoder = LongformerConfig(vocab_size=len(VOCAB), hidden_size=8, num_attention_heads=2)
    config = triviaqa_config.TriviaQaConfig(
        encoder_config=encoder,
        vocab_file=write_vocab(tmp_path),
        evidence_dir=str(tmp_path / "elsewhere"),
        long_seq_length=16,
        global_seq_length=8,
    )
    (tmp_path / "triviaqa_config.json").write_text(json.dumps(config.exported_options()))
    name = encoders.encoder_type("longformer").config_file
    (tmp_path / name).write_text(encoder.to_json_string())
    return str(tmp_path)


def test_an_export_needs_no_folder_of_evidence_until_it_reads_from_it(export):
    predictor = Predictor(export)
    raw = {"QuestionId": "q", "Question": "who was it", "SearchResults": [{"Text": "the king"}]}
    (features,) = predictor.make_features(predictor.parse_example(raw))
    assert features["text"] == ["the king"]
    raw["SearchResults"] = [{"Filename": "a.txt"}]
    with pytest.raises(ValueError, match="web/a.txt: no such file in .*elsewhere"):
        predictor.make_features(predictor.parse_example(raw))
    with pytest.raises(ValueError, match="--evidence_dir: no such folder: 'nowhere'"):
        Predictor(export, evidence_dir="nowhere")


@pytest.mark.parametrize(
    "config_class", [triviaqa_config.TriviaQaConfig, classification_config.ClassificationConfig]
)
def test_inputs_have_at_most_as_many_tokens_as_the_model_has_positions(config_class):
    entries = {"vocab_size": 9, "max_position_embeddings": 34, "pad_token_id": 1}
    encoder = LongformerConfig(**entries)
    assert config_class(encoder_config=encoder, long_seq_length=32).long_seq_length == 32
    with pytest.raises(ValueError, match="`long_seq_length` must be at most .* 32. Received: 33"):
        config_class(encoder_config=encoder, long_seq_length=33)


def test_a_text_is_no_list_of_texts(export):
    with pytest.raises(ValueError, match="`texts` must be a list of texts. Received: 'the king'"):
        Predictor(export).predict_one("who was it", "the king")
