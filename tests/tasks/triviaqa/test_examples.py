"""Features of questions with their documents, compared with some written by hand."""

import pytest

from etcmodel.tasks.triviaqa import examples
from etcmodel.tasks.triviaqa import features as triviaqa_features
from etcmodel.text import vocabulary_files
from tests.reference import cases
from tests.tasks.triviaqa.questions import VOCAB, input_config, raw_question, tokenizer

BYTES = cases.topic_folder("longformer") / "tokenizer" / "vocab.json"


def make(tmp_path, *texts, answers=("red king",), question="who was it", **options):
    pages = [{"Text": text} for text in texts]
    raw = raw_question(answers=answers, SearchResults=pages, Question=question)
    settings = input_config(**options)
    processor = settings.make_processor(tokenizer(tmp_path))
    return triviaqa_features.make_features(examples.parse_example(raw), settings, processor)


def words(ids):
    return " ".join(VOCAB[i] for i in ids)


def marked(features):
    """What starts and what ends answers: the tokens' numbers."""
    return tuple(
        [place for place, label in enumerate(features[f"labels/{end}"]) if label]
        for end in ("starts", "ends")
    )


def test_a_document_follows_the_question_with_all_its_answers_marked(tmp_path):
    made = make(tmp_path, "It was red, it was a Red-King. the red king of mud", is_training=True)
    (features,) = made.windows
    assert words(features["token_ids"]) == (
        "[CLS] who was it [SEP] it was red , it was a red - king [SEP]"
    )
    assert features["links"] == [0, 1, 2, 3, 0, *[4] * 10, 0]
    assert words(features["global_token_ids"]) == "[CLS] who was it [CLS] [PAD] [PAD] [PAD]"
    assert features["segment_ids"] == [0] * 5 + [1] * 11
    assert marked(features) == ([12], [14])
    assert features["question_id"] == ["q_1"] and "text" not in features
    assert made.counts["documents_cut"] == 1 and not made.problems


def test_with_a_stride_the_rest_is_in_further_windows(tmp_path):
    text = "It was red, it was a Red-King. the red king of mud"
    made = make(tmp_path, text, stride=2, is_training=True, answers=["red king", "mud", "king mud"])
    first, second = made.windows
    assert marked(first) == ([12], [14])
    assert words(second["token_ids"]) == (
        "[CLS] who was it [SEP] - king . the red king of mud [SEP] [PAD] [PAD]"
    )
    assert marked(second) == ([9, 12], [10, 12])  # The first answer is cut in two.
    assert made.counts["documents_cut"] == 0


@pytest.mark.parametrize("is_training", [True, False])
def test_pieces_of_bytes_have_the_characters_of_the_document(is_training):
    tokenizer = vocabulary_files.open_tokenizer(str(BYTES))
    settings = input_config(long_seq_length=64, global_seq_length=32, is_training=is_training)
    text = "It was (Jürgen Müller) — he wrote it. Mr. müller, Köln."
    raw = raw_question(answers=["müller"], SearchResults=[{"Text": text}], Question="Who was it?")
    processor = settings.make_processor(tokenizer)
    ((features,), _, problems) = triviaqa_features.make_features(
        examples.parse_example(raw), settings, processor
    )
    question = tokenizer.encode("Who was it?").ids
    assert features["token_ids"][: len(question)] == question and not problems
    whole = tokenizer.encode(text)
    first = len(question)  # Behind `</s>`.
    count = len(whole.ids) - 2
    assert features["token_ids"][first : first + count] == whole.ids[1:-1]
    places = range(first, first + count)
    if is_training:
        spelled = [
            text[whole.offsets[start - first + 1][0] : whole.offsets[end - first + 1][1]]
            for start, end in zip(*marked(features), strict=True)
        ]
        assert spelled == ["Müller", "müller"]
    else:
        assert features["text"] == [text]
        found = [(features["token_starts"][x], features["token_ends"][x]) for x in places]
        assert found == whole.offsets[1:-1]


def test_windows_without_an_answer_are_left_out_in_training(tmp_path):
    made = make(tmp_path, "It was mud.", "the red king", is_training=True)
    assert marked(made.windows[0]) == ([6], [7])
    assert (len(made.windows), made.counts["windows_without_answer"]) == (1, 1)
    made = make(tmp_path, "It was mud.", "the green king", is_training=True)
    assert made.windows == [] and made.counts["questions_without_answer"] == 1


def test_for_prediction_the_text_goes_along(tmp_path):
    made = make(tmp_path, "\n It's  Muddy!\n\nRed.", "Green", is_training=False)
    features, other = made.windows
    assert features["document"] == ["SearchResults[0]"] and other["document"] == [
        "SearchResults[1]"
    ]
    assert features["text"] == ["It's  Muddy!\n\nRed."] and "labels/starts" not in features
    assert words(features["token_ids"]).startswith("[CLS] who was it [SEP] it ' [UNK] mud ##dy")
    text, starts, ends = features["text"][0], features["token_starts"], features["token_ends"]
    spelled = [text[start:end] for start, end in zip(starts, ends, strict=True) if start >= 0]
    assert spelled == ["It", "'", "s", "Mud", "dy", "!", "Red", "."]
    assert features["text_start"] == [2]
    assert [place for place, start in enumerate(starts) if start >= 0] == list(range(5, 13))
    assert ends[:5] == [-1] * 5 and len(ends) == 16


def read(tmp_path, name, folder="evidence", **fields):
    raw = raw_question(**{"web": [name], **fields})
    settings = input_config(is_training=False, evidence_dir=folder and str(tmp_path / folder))
    processor = settings.make_processor(tokenizer(tmp_path))
    return triviaqa_features.make_features(examples.parse_example(raw), settings, processor)


def test_documents_are_files_in_the_folder_of_their_source(tmp_path):
    for folder, text in (("web/1", "red"), ("wikipedia", "green")):
        (tmp_path / "evidence" / folder).mkdir(parents=True)
        (tmp_path / "evidence" / folder / "a.txt").write_text(text, encoding="utf-8")
    (first,) = read(tmp_path, "1/a.txt").windows
    (second,) = read(tmp_path, None, web=(), wikipedia=["a.txt"]).windows
    (third,) = read(tmp_path, "1/a.txt", folder="evidence/web").windows
    assert first["text"] == third["text"] == ["red"] and second["text"] == ["green"]
    assert first["document"] == ["1/a.txt"]


@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("b.txt", "missing", "web/b.txt: no such file in "),
        ("../secret.txt", "missing", "web/../secret.txt: no such file in "),
        ("a\0b.txt", "missing", "no such file in "),
        ("folder", "missing", "web/folder: no such file in "),
        ("x" * 300, "missing", "no such file in "),
        ("latin.txt", "undecodable", "web/latin.txt: invalid UTF-8 at byte 4"),
        ("blank.txt", "empty", "web/blank.txt: the document is empty"),
    ],
)
def test_documents_that_cannot_be_used_are_counted_and_named(tmp_path, name, kind, problem):
    (tmp_path / "evidence" / "web" / "folder").mkdir(parents=True)
    (tmp_path / "evidence" / "secret.txt").write_text("red", encoding="utf-8")
    (tmp_path / "evidence" / "web" / "latin.txt").write_bytes(b"red\xe9")
    (tmp_path / "evidence" / "web" / "blank.txt").write_bytes(b" \n")
    made = read(tmp_path, name)
    assert made.windows == [] and made.counts[f"documents_{kind}"] == 1
    assert made.counts["questions_without_evidence"] == 1
    assert made.counts["questions_without_answer"] == 0
    assert problem in made.problems[0] and "no document that can be used" in made.problems[1]


def test_without_a_folder_files_are_missing(tmp_path):
    assert "web/a.txt: --evidence_dir is not given" in read(tmp_path, "a.txt", folder="").problems


def test_a_document_without_pieces_leaves_the_others(tmp_path):
    for is_training in (True, False):
        made = make(tmp_path, "\u200b", "the red king", is_training=is_training)
        assert len(made.windows) == 1 and made.counts["documents_empty"] == 1
        assert "has no character that the vocabulary knows" in made.problems[0]


def test_a_text_that_no_file_can_have_leaves_the_others(tmp_path):
    made = make(tmp_path, "red king \ud83d", "the red king", is_training=False)
    (features,) = made.windows
    assert features["text"] == ["the red king"] and made.counts["documents_undecodable"] == 1
    assert made.problems == ["web/SearchResults[0]: invalid UTF-8 at character 10"]


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(ValueError, match="example 'q_1'.*`max_long_len` to be at least"):
        make(tmp_path, "red", question="who " * 20, global_seq_length=40)
    with pytest.raises(ValueError, match="the question leaves no room for a document. Raise"):
        make(tmp_path, "red", question="who was it who was it who", global_seq_length=8)
    raw = raw_question(Answer=None)
    with pytest.raises(ValueError, match="example 'q_1': field `Answer` is missing, and training"):
        triviaqa_features.make_features(examples.parse_example(raw), input_config(), None)
