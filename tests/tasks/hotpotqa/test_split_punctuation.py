"""Text that is split at punctuation before SentencePiece: answers with marks, from end to end."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest

from etcmodel import training
from etcmodel.preprocessing import program
from etcmodel.tasks.hotpotqa import examples, features, predict, preprocess
from etcmodel.tasks.hotpotqa.config import DecodingConfig, HotpotQAInputConfig
from etcmodel.tasks.hotpotqa.metrics import generate_predictions
from etcmodel.tasks.hotpotqa.task import HotpotQaTask
from etcmodel.text import tokenization
from tests.tasks import exports, small_encoders

REFERENCE = pathlib.Path(__file__).resolve().parents[2] / "reference" / "small"
MODEL = str(REFERENCE / "vocab" / "gpt2_sentencepiece.model")
LONG, GLOBAL = 96, 32
SENTENCE = "Mr. O'Neil (b. 1950) lived in the U.S.A., “near” St. John's, until 1,990."
ETC_CONFIG = small_encoders.config("etc", 2740, LONG)


def raw_example(answer="O'Neil"):
    return {
        "_id": "q1",
        "question": "Who's he?",
        "answer": answer,
        "supporting_facts": [["Mr. O'Neil", 0]],
        "context": [["Mr. O'Neil", [SENTENCE, " A. B."]]],
        "type": "bridge",
        "level": "easy",
    }


@pytest.fixture(scope="module")
def tokenizer():
    return tokenization.FullTokenizer(None, spm_model_file=MODEL, split_punctuation=True)


@pytest.fixture(scope="module")
def make_features(tokenizer):
    def make(answer):
        config = HotpotQAInputConfig.for_tokenizer(
            tokenizer, long_seq_length=LONG, global_seq_length=GLOBAL, debug=True
        )
        example = examples.parse_example(raw_example(answer))
        return features.make_features(example, config, tokenizer).features

    return make


@pytest.fixture(scope="module")
def decode(tokenizer, make_features):
    """The answer of a span of long tokens."""
    features = {name: np.array(values) for name, values in make_features("yes").items()}
    example = examples.parse_example(raw_example())

    def answer(first, last):
        output = {
            **features,
            "supporting_facts_probs": np.ones(GLOBAL),
            "answer_types": 0,
            "answer_begin_top_indices": [first],
            "answer_begin_top_probs": [1.0],
            "answer_end_top_indices": [last],
            "answer_end_top_probs": [1.0],
        }
        config = DecodingConfig(max_answer_length=LONG)
        return generate_predictions([output], [example], tokenizer, config)["answer"]["q1"]

    return answer


@pytest.mark.parametrize(
    ("answer", "pieces"),
    [
        ("O'Neil", "▁O ▁' ▁Ne il"),
        ("U.S.A.", "▁U ▁. ▁S ▁. ▁A ▁."),
        ("1,990", "▁1 ▁, ▁9 90"),
        ("(b. 1950)", "▁( ▁b ▁. ▁19 50 ▁)"),
        ("St. John's", "▁St ▁. ▁J o h n ▁' ▁s"),
        ("until 1,990.", "▁ unt il ▁1 ▁, ▁9 90 ▁."),
    ],
)
def test_an_answer_is_labeled_and_decoded_as_it_stands_in_the_text(
    make_features, decode, answer, pieces
):
    features = make_features(answer)
    first, last = features["answer_begins"][0], features["answer_ends"][0]
    found = features["long_tokens"][first : last + 1]
    # A space that is a piece of its own does not belong to the answer after it.
    assert found == pieces.removeprefix("▁ ").split()
    assert decode(first, last) == answer


def test_every_span_of_a_sentence_is_a_part_of_it(make_features, decode):
    features = make_features("yes")
    ids = features["long_sentence_ids"]
    tokens = [place for place, sentence in enumerate(ids) if sentence == ids[40]]
    texts = {(first, last): decode(first, last) for first in tokens for last in tokens[:30]}
    for (first, last), text in texts.items():
        if first <= last:
            spelled = "".join(features["long_tokens"][first : last + 1]).replace("▁", "")
            assert text in SENTENCE
            assert text.replace(" ", "").replace("“", "<unk>").replace("”", "<unk>") == spelled


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records of split text, made by the program's own parts."""
    folder = tmp_path_factory.mktemp("split")
    (folder / "train.json").write_text(json.dumps([raw_example()]))
    options = preprocess.PreprocessOptions(
        input_pattern=str(folder / "train.json"),
        output_prefix=str(folder / "train"),
        spm_model_file=MODEL,
        split_punctuation=True,
        long_seq_length=LONG,
        global_seq_length=GLOBAL,
        num_shards=1,
        strict=True,
    )
    list(program.run(options, preprocess.load_parts))
    return folder


class TestPrograms:
    def task(self, folder, **options):
        pattern = str(folder / "train-*")
        config = HotpotQaTask.config_class(
            encoder_config=ETC_CONFIG,
            train_data=pattern,
            eval_data=pattern,
            long_seq_length=LONG,
            global_seq_length=GLOBAL,
            **options,
        )
        return HotpotQaTask(config)

    @pytest.mark.parametrize("vocabulary", [{}, {"spm_model_file": MODEL}])
    def test_records_and_runs_must_agree(self, folder, vocabulary):
        request = training.TrainDataRequest(global_batch_size=1)
        self.task(folder, split_punctuation=True, **vocabulary).train_dataset(request)
        message = f"{folder}/train.config.json: the records were made with --split_punctuation"
        with pytest.raises(ValueError, match=message):
            self.task(folder, **vocabulary).train_dataset(request)
        with pytest.raises(ValueError, match=message):
            self.task(folder, spm_model_file=MODEL).eval_dataset(1)

    def test_an_export_keeps_how_text_is_split(self, folder, tokenizer, tmp_path):
        task = self.task(folder, spm_model_file=MODEL, split_punctuation=True)
        written = exports.write_assets(task, tmp_path / "export")
        predictor = exports.of_assets(predict.HotpotQaPredictor, written)
        assert predictor.tokenizer.split_punctuation
        (features,) = predictor.make_features(examples.parse_example(raw_example()))
        tokens = tokenizer.convert_ids_to_tokens(features["long_token_ids"])
        assert tokens[1:6] == tokenizer.tokenize("Who's he?")[:5]


def test_without_splitting_a_mark_is_part_of_its_word(tokenizer):
    """The difference that all this is about."""
    plain = tokenization.FullTokenizer(None, spm_model_file=MODEL)
    config = HotpotQAInputConfig.for_tokenizer(
        plain, long_seq_length=LONG, global_seq_length=GLOBAL, debug=True
    )
    example = dataclasses.replace(examples.parse_example(raw_example()), answer="yes")
    tokens = [
        features.make_features(example, config, one).features["long_tokens"]
        for one in (plain, tokenizer)
    ]
    assert "'" in "".join(tokens[0][:6]) and "▁'" not in tokens[0]
    assert "▁'" in tokens[1]
