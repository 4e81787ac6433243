"""Decoding of model outputs into predictions, and the official metrics."""

import dataclasses
import pathlib

import numpy as np
import pytest

from etcmodel import finetuning
from etcmodel.models import modeling
from etcmodel.tasks.hotpotqa import examples
from etcmodel.tasks.hotpotqa import features as hotpotqa_features
from etcmodel.tasks.hotpotqa.config import DecodingConfig, HotpotQaConfig, HotpotQAInputConfig
from etcmodel.tasks.hotpotqa.metrics import generate_predictions
from etcmodel.text import tokenization
from tests import records, vocabularies

WORDS = "who ? rose town the red sings , . blue sky ##ly loud"
REFERENCE = pathlib.Path(__file__).resolve().parents[2] / "reference" / "small"
TINY_MODEL = REFERENCE / "tokenization" / "tiny_digit_comma.model"
HEAD = ["[PAD]", *(f"[unused{i}]" for i in range(5)), "[UNK]", "[CLS]"]

# Long input: 0 [CLS] 1 who 2 ? | 3 rose | 4 the 5 red 6 rose 7 . | 8 loud 9 ##ly 10 sings 11 . | …
EXAMPLE = examples.HotpotQAExample(
    example_id="q1",
    question="Who?",
    paragraphs=(
        examples.Paragraph("Rose", ("The Red Rose.", " Loudly sings.")),
        examples.Paragraph("Town", ("Blue sky, the town.",)),
    ),
    answer="Red Rose",
    supporting_facts=(examples.SupportingFact("Rose", 0),),
)
# Global input: 0 [CLS] 1-2 question | 3 paragraph 4 title 5-6 sentences | 7 paragraph 8 title 9 …
SENTENCE_OF_ANSWER, SECOND_SENTENCE, TOWN_SENTENCE = 5, 6, 9


tokenizer = vocabularies.fixture(HEAD + WORDS.split())


@pytest.fixture(scope="module")
def features(tokenizer):
    fields = {"is_training": False, "long_seq_length": 24, "global_seq_length": 12}
    config = HotpotQAInputConfig.for_tokenizer(tokenizer, **fields)
    return hotpotqa_features.make_features(EXAMPLE, config, tokenizer).features


@pytest.fixture
def predict(tokenizer, features):
    """A function of the spans (begin, end, probabilities) and so on to the prediction."""

    def decode(begins, ends, facts=(SENTENCE_OF_ANSWER,), answer_type=0, extra=None, **config):
        supporting_facts = np.zeros(12, np.float32)
        supporting_facts[list(facts)] = 0.9
        output = {
            **{name: np.array(values) for name, values in features.items()},
            "supporting_facts_probs": supporting_facts,
            "answer_types": np.array([answer_type]),
            "answer_begin_top_indices": np.array([index for index, _ in begins]),
            "answer_begin_top_probs": np.array([prob for _, prob in begins]),
            "answer_end_top_indices": np.array([index for index, _ in ends]),
            "answer_end_top_probs": np.array([prob for _, prob in ends]),
            **(extra or {}),
        }
        return generate_predictions([output], [EXAMPLE], tokenizer, DecodingConfig(**config))

    return decode


ONE = {"max_answer_length": 1}
BOTH = [SENTENCE_OF_ANSWER, SECOND_SENTENCE]
PADDING = [SENTENCE_OF_ANSWER, 11]  # The last global token is padding.
# Begins and ends, further options, and the answer.
ANSWERS = {
    "the raw text of the best pair": ([(5, 0.9), (4, 0.3)], [(6, 0.8), (7, 0.1)], {}, "Red Rose"),
    "word pieces are projected": ([(8, 1)], [(9, 1)], {"facts": [SECOND_SENTENCE]}, "Loudly"),
    "by both ends: the end": ([(4, 0.9), (6, 0.5)], [(4, 0.1), (6, 0.4)], ONE, "Rose"),
    "by both ends: the begin": ([(4, 0.9), (6, 0.4)], [(4, 0.2), (6, 0.4)], ONE, "The"),
    "an end before its begin is none": ([(6, 0.9), (4, 0.1)], [(5, 0.9)], {}, "The Red"),
    "within one sentence": ([(5, 0.9)], [(8, 0.9), (5, 0.1)], {"facts": BOTH}, "Red"),
    "of three tokens": ([(5, 0.9)], [(7, 0.9), (5, 0.1)], {"max_answer_length": 3}, "Red Rose."),
    "of two tokens": ([(5, 0.9)], [(7, 0.9), (5, 0.1)], {"max_answer_length": 2}, "Red"),
    "supporting first": ([(8, 0.9), (5, 0.1)], [(10, 0.9), (6, 0.1)], {}, "Red Rose"),
    "a title": ([(3, 0.9)], [(3, 0.9)], {"facts": [4]}, "Rose"),
    "yes": ([(5, 1)], [(6, 1)], {"answer_type": 1}, "yes"),
    "no": ([(5, 1)], [(6, 1)], {"answer_type": 2}, "no"),
}
# The faults of the release: the answer without them, and with them.
FAULTS = {
    "without a supporting span, the best": ([(5, 1)], [(5, 1)], {"facts": []}, "Red", ""),
    "CLS": ([(0, 0.9), (5, 0.1)], [(0, 0.9), (5, 0.1)], {"facts": PADDING}, "Red", ""),
    "CLS to padding": (
        [(0, 0.9), (5, 0.5)],
        [(23, 0.9), (5, 0.5)],
        {"facts": PADDING},
        "Red",
        "",
    ),
    "the first of equals": ([(4, 0.5), (5, 0.5)], [(4, 0.5), (5, 0.5)], ONE, "The", "Red"),
    "a better one": ([(4, 0.6), (5, 0.5)], [(4, 0.5), (5, 0.5)], ONE, "The", "The"),
}


class TestDecoding:
    @pytest.mark.parametrize("name", ANSWERS)
    def test_the_answer_is_the_best_span_that_may_be(self, predict, name):
        begins, ends, options, answer = ANSWERS[name]
        assert predict(begins, ends, **options)["answer"]["q1"] == answer

    @pytest.mark.parametrize("name", FAULTS)
    def test_the_release_has_faults(self, predict, name):
        begins, ends, options, *answers = FAULTS[name]
        for compatible, answer in zip((False, True), answers, strict=True):
            prediction = predict(begins, ends, release_compatible=compatible, **options)
            assert prediction["answer"]["q1"] == answer

    def test_the_supporting_facts_are_titles_and_indices_in_the_file(self, predict):
        facts = [3, 4, SENTENCE_OF_ANSWER, TOWN_SENTENCE]
        prediction = predict([(5, 1.0)], [(6, 1.0)], facts)
        assert prediction["sp"] == {"q1": [["Rose", 0], ["Town", 0]]}
        prediction = predict([(5, 1.0)], [(6, 1.0)], supporting_fact_threshold=0.95)
        assert prediction["sp"] == {"q1": []}

    @pytest.mark.parametrize("threshold", [0.95, 0.5])
    def test_at_least_so_many_sentences_support_the_likeliest_first(self, predict, threshold):
        probs = np.zeros(12, np.float32)
        probs[[3, 4, SENTENCE_OF_ANSWER, SECOND_SENTENCE, TOWN_SENTENCE]] = [1, 1, 0.6, 0.2, 0.3]
        found = {
            least: predict(
                [(8, 0.9), (5, 0.1)],
                [(10, 0.9), (6, 0.1)],
                extra={"supporting_facts_probs": probs},
                supporting_fact_threshold=threshold,
                min_supporting_facts=least,
            )
            for least in (0, 1, 2, 9)
        }
        answer, second, town = ["Rose", 0], ["Rose", 1], ["Town", 0]
        facts = {least: prediction["sp"]["q1"] for least, prediction in found.items()}
        above = [answer] if threshold < 0.6 else []
        assert facts == {0: above, 1: [answer], 2: [answer, town], 9: [answer, second, town]}
        # Answers come from what supports.
        assert found[1]["answer"]["q1"] == "Red Rose" and found[9]["answer"]["q1"] == "Loudly sings"

    def test_bio_takes_the_run_with_the_highest_mean(self, predict):
        ids = np.full(24, 2)
        ids[[4, 5, 6, 10]] = [0, 0, 1, 1]
        probs = np.full(24, 0.99)
        probs[[4, 5, 6]] = [0.5, 0.6, 0.8]
        extra = {"answer_bio_ids": ids, "answer_bio_probs": probs}
        found = predict([], [], extra=extra, answer_encoding_method="bio")
        assert found["answer"]["q1"] == "Red Rose"

    @pytest.mark.parametrize(("compatible", "answer"), [(False, "Red Rose"), (True, "")])
    def test_the_release_loses_a_bio_answer_at_the_inputs_end(self, predict, compatible, answer):
        ids = np.full(7, 2)
        ids[[5, 6]] = [0, 1]
        extra = {"answer_bio_ids": ids, "answer_bio_probs": np.ones(7)}
        options = {"answer_encoding_method": "bio", "release_compatible": compatible}
        assert predict([], [], extra=extra, **options)["answer"]["q1"] == answer

    def test_examples_without_output_get_an_empty_prediction(self, tokenizer):
        prediction = generate_predictions([], [EXAMPLE], tokenizer, DecodingConfig())
        assert prediction == {"answer": {"q1": ""}, "sp": {"q1": []}}

    def test_outputs_of_other_data_are_an_error(self, tokenizer):
        with pytest.raises(ValueError, match="the last has id 'other'"):
            outputs = [{"unique_ids": np.array([b"other"])}]
            generate_predictions(outputs, [EXAMPLE], tokenizer, DecodingConfig())

    def test_questions_with_the_same_id_are_an_error(self, tokenizer):
        other = dataclasses.replace(EXAMPLE, question="Who?")
        with pytest.raises(ValueError, match="two examples with the id 'q1'"):
            generate_predictions([], [EXAMPLE, other], tokenizer, DecodingConfig())

    @pytest.mark.parametrize("compatible", [False, True])
    def test_evaluation_reads_from_records_what_decoding_needs(
        self, tokenizer, features, compatible, tmp_path
    ):
        config = HotpotQaConfig(
            encoder_config=modeling.EtcConfig(vocab_size=len(tokenizer.vocab)),
            release_compatible=compatible,
            long_seq_length=24,
            global_seq_length=12,
        )
        path = records.write(tmp_path / "dev", features)
        dataset = finetuning.make_eval_dataset(path, config.records(), 1)
        (batch,) = dataset.unbatch().as_numpy_iterator()
        facts = np.zeros(12)
        facts[SENTENCE_OF_ANSWER] = 0.9
        output = {**batch, "supporting_facts_probs": facts, "answer_types": 0}
        for side, place in (("begin", 5), ("end", 6)):
            output[f"answer_{side}_top_indices"] = np.array([place])
            output[f"answer_{side}_top_probs"] = np.array([0.9])
        found = generate_predictions([output], [EXAMPLE], tokenizer, config.decoding())
        assert found["answer"]["q1"] == "Red Rose"

    @pytest.mark.parametrize("order", [1, -1])
    @pytest.mark.parametrize(
        ("positions", "first", "last"),
        [
            # Begins, ends; what wins corrected; what wins as in the release.
            (([4, 9], [5, 10]), "The Red", "ly sings"),
            (([5], [5, 6]), "Red", "Red Rose"),
            (([5, 6], [6]), "Red Rose", "Rose"),
            (([5, 6], [6, 7]), "Red Rose", "Rose."),
        ],
    )
    def test_equal_spans_are_ranked_by_position_not_by_their_place_in_the_lists(
        self, predict, positions, first, last, order
    ):
        begins, ends = ([(index, 0.5) for index in side][::order] for side in positions)
        facts = [SENTENCE_OF_ANSWER, SECOND_SENTENCE]
        for compatible, answer in ((False, first), (True, last)):
            prediction = predict(begins, ends, facts, release_compatible=compatible)
            assert prediction["answer"]["q1"] == answer

    @pytest.mark.parametrize("compatible", [False, True])
    def test_paragraphs_of_one_title_share_their_facts(self, tokenizer, compatible):
        twice = dataclasses.replace(EXAMPLE, paragraphs=EXAMPLE.paragraphs[:1] * 2)
        output = {
            "unique_ids": "q1",
            "long_sentence_ids": np.array([-1]),
            "long_token_type_ids": np.array([1]),
            "global_paragraph_ids": np.array([0, 1]),
            "global_sentence_ids": np.array([1, 1]),
            "supporting_facts_probs": np.array([0.9, 0.9]),
            "answer_types": 1,
        }
        config = DecodingConfig(release_compatible=compatible)
        prediction = generate_predictions([output], [twice], tokenizer, config)
        assert prediction["sp"]["q1"] == [["Rose", 1]] * (2 if compatible else 1)

    @pytest.mark.parametrize(("compatible", "answer"), [(False, "Ω lamp"), (True, "<unk> lamp")])
    def test_unknown_sentence_pieces_are_spelled_as_in_the_text(self, compatible, answer):
        tokenizer = tokenization.FullTokenizer(None, spm_model_file=str(TINY_MODEL))
        example = examples.HotpotQAExample(
            "q1", "?", (examples.Paragraph("river", ("bees Ω lamp",)),)
        )
        config = HotpotQAInputConfig.for_tokenizer(
            tokenizer, is_training=False, debug=True, long_seq_length=32, global_seq_length=8
        )
        features = hotpotqa_features.make_features(example, config, tokenizer).features
        tokens = features["long_tokens"]
        span = [tokens.index("▁lamp") - 1, tokens.index("▁lamp")]
        output = {
            **{name: np.array(values) for name, values in features.items()},
            "supporting_facts_probs": np.ones(8),
            "answer_types": 0,
            "answer_begin_top_indices": span[:1],
            "answer_begin_top_probs": [1.0],
            "answer_end_top_indices": span[1:],
            "answer_end_top_probs": [1.0],
        }
        config = DecodingConfig(release_compatible=compatible)
        prediction = generate_predictions([output], [example], tokenizer, config)
        assert prediction["answer"]["q1"] == answer
