"""What the predictor asks of an export, and of what it is told to answer from."""

import pytest

from etcmodel.models.longformer.config import LongformerConfig
from etcmodel.tasks.triviaqa.predict import TriviaQaPredictor
from etcmodel.tasks.triviaqa.task import TriviaQaTask
from tests.tasks import exports
from tests.tasks.triviaqa.questions import VOCAB, write_vocab


@pytest.fixture
def export(tmp_path):
    """A folder that was exported with another machine's `--evidence_dir`."""
    encoder = LongformerConfig(vocab_size=len(VOCAB), hidden_size=8, num_attention_heads=2)
    config = TriviaQaTask.config_class(
        encoder_config=encoder,
        vocab_file=write_vocab(tmp_path),
        evidence_dir=str(tmp_path / "elsewhere"),
        long_seq_length=16,
        global_seq_length=8,
    )
    return exports.write_assets(TriviaQaTask(config), tmp_path / "export")


def predictor_of(export, **options):
    return exports.of_assets(TriviaQaPredictor, export, **options)


def test_an_export_needs_no_folder_of_evidence_until_it_reads_from_it(export):
    predictor = predictor_of(export)
    raw = {"QuestionId": "q", "Question": "who was it", "SearchResults": [{"Text": "the king"}]}
    (features,) = predictor.make_features(predictor.parse_example(raw))
    assert features["text"] == ["the king"]
    raw["SearchResults"] = [{"Filename": "a.txt"}]
    with pytest.raises(ValueError, match="web/a.txt: no such file in .*elsewhere"):
        predictor.make_features(predictor.parse_example(raw))
    with pytest.raises(ValueError, match="--evidence_dir: no such folder: 'nowhere'"):
        predictor_of(export, evidence_dir="nowhere")


def test_a_text_is_no_list_of_texts(export):
    with pytest.raises(ValueError, match="`texts` must be a list of texts. Received: 'the king'"):
        predictor_of(export).predict_one("who was it", "the king")
