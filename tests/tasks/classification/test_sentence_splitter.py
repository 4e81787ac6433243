"""A model's texts are split into sentences as those were that it was trained on.

Until `sentence_splitter` became an option, it was fixed to 'simple', which does not split Chinese.
"""

import pytest
from absl import flags

import etcmodel
from etcmodel import options
from etcmodel.finetuning import trained_run
from etcmodel.models import modeling
from etcmodel.tasks.classification import config as classification
from etcmodel.tasks.classification import examples, features
from etcmodel.tasks.triviaqa import config as triviaqa
from etcmodel.text.byte_bpe import ByteLevelTokenizer
from tests.reference import cases
from tests.tasks.classification.raw_texts import tokenizer
from tests.tasks.classification.test_preprocess import lines, run

TWO_SENTENCES = "他来了。她走了。"
CONFIGS = [classification.ClassificationConfig, triviaqa.TriviaQaConfig]


def raw_texts():
    return lines(*({"text": TWO_SENTENCES, "label": label} for label in ("good", "bad")))


@pytest.mark.parametrize("splitter, num_sentences", [(None, 2), ("simple", 1)])
def test_records_name_the_splitter_that_made_them(tmp_path, splitter, num_sentences):
    given = {"sentence_splitter": splitter} if splitter else {}
    records, settings, _ = run(tmp_path, raw_texts(), **given)
    assert settings["sentence_splitter"] == (splitter or "multilingual")
    global_tokens = sum(records[0]["global_example_ids"].int64_list.value)
    assert global_tokens == 1 + num_sentences  # The first is of the whole text.


SPACED = " One.  Two!\nThree. "


@pytest.mark.parametrize("text", [SPACED, "Line.\n", "One line. Another."])
@pytest.mark.parametrize("splitter", ["whole", "multilingual"])
def test_whole_texts_have_the_tokens_of_a_models_own_processor(text, splitter):
    bytes_of = ByteLevelTokenizer.from_pretrained(cases.topic_folder("longformer") / "tokenizer")
    own = etcmodel.LongformerProcessor(bytes_of)
    lengths = {"long_seq_length": 40, "global_seq_length": 8, "labels": ("bad", "good")}
    arrangement = {"question_separators": 2, "sentence_splitter": splitter}
    config = classification.ClassificationInputConfig(**lengths, **arrangement)
    processor = config.make_processor(bytes_of)
    for second, read in ((None, text), (text, {"question": SPACED, "documents": [text]})):
        example = examples.TextExample("1", SPACED if second else text, second)
        made, _ = features.make_features(example, config, processor)
        ids = own([read])["input_ids"][0].tolist()
        has_other_space = text != "One line. Another."
        is_equal = made["token_ids"][: len(ids)] == ids and sum(made["example_ids"]) == len(ids)
        assert is_equal == (splitter == "whole" or not has_other_space)


def read_export(config_class, kept):
    kept = options.load_kept(config_class, kept, "export")
    encoder_config = modeling.EtcConfig(vocab_size=11, segment_vocab_size=4)
    return config_class(encoder_config=encoder_config, **kept).features()


@pytest.mark.parametrize("config_class", CONFIGS)
def test_an_export_that_does_not_name_it_splits_as_then(config_class, tmp_path):
    lengths = {"max_long_seq_length": 12, "max_global_seq_length": 6}
    for splitter, named in (("simple", {}), ("punkt", {"sentence_splitter": "punkt"})):
        features = read_export(config_class, {**lengths, **named})
        assert features.make_processor(tokenizer(tmp_path)).config.sentence_splitter == splitter


def parsed(config_class, *arguments):
    values = flags.FlagValues()
    options.ProgramFlags({"task": config_class}, values).define()
    values(["program", *arguments])
    return values


@pytest.mark.parametrize("config_class", CONFIGS)
def test_a_run_or_records_that_do_not_name_it_were_split_as_then(config_class):
    values = parsed(config_class)
    of_records = trained_run.options_of_records(config_class, values, {"train.config.json": {}})
    assert of_records["sentence_splitter"] == "simple"
    begun = trained_run.TrainedRun("run", {}, {}, {})
    assert begun.values(config_class, values)["sentence_splitter"] == "simple"
    later = trained_run.TrainedRun("run", {"sentence_splitter": "multilingual"}, {}, {})
    assert later.values(config_class, values)["sentence_splitter"] == "multilingual"
    with pytest.raises(ValueError, match="--sentence_splitter=punkt: the run in run was made with"):
        begun.values(config_class, parsed(config_class, "--sentence_splitter=punkt"))
