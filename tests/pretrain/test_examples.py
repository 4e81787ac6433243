"""Documents become windows: read, split, packed, described."""

import bz2
import gzip
import json

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etcmodel.pretrain import examples, features
from etcmodel.text import tokenization
from tests.pretrain import windows
from tests.pretrain.runs import make_records


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return windows.make_tokenizer(tmp_path_factory.mktemp("vocab"))


def read(path, **options):
    return [d for group in examples.read_groups(str(path), **options) for d in group["documents"]]


class TestReading:
    def test_blank_lines_separate_documents(self, tmp_path):
        path = tmp_path / "text.txt"
        path.write_text("\nOne\ntwo.\n \n\nThree.", encoding="utf-8")
        assert read(path) == [
            {"id": f"{path}:2", "text": "One\ntwo.\n"},
            {"id": f"{path}:6", "text": "Three."},
        ]

    def test_a_compressed_file_may_be_one_document(self, tmp_path):
        path = tmp_path / "text.txt.gz"
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.write("One.\n\nTwo.\n")
        assert read(path, document_separator="file") == [
            {"id": str(path), "text": "One.\n\nTwo.\n"}
        ]

    def test_json_lines_have_a_text(self, tmp_path):
        path = tmp_path / "text.jsonl"
        path.write_text('{"text": "One.", "id": 7}\n\n{"text": "Two."}\n', encoding="utf-8")
        assert read(path) == [{"id": "7", "text": "One."}, {"id": f"{path}:3", "text": "Two."}]

    @pytest.mark.parametrize("name", ["c4.json", "c4.JSONL", "c4.ndjson", "c4.txt", "c4", "c4.gz"])
    @pytest.mark.parametrize("packing", [bytes, gzip.compress, bz2.compress])
    def test_json_is_known_by_what_it_is_whatever_its_name(self, tmp_path, name, packing):
        texts = [f"Text {number}." for number in range(12)]
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (tmp_path / name).write_bytes(packing(b"\xef\xbb\xbf" + lines.encode()))
        assert [document["text"] for document in read(tmp_path / name)] == texts

    def test_what_is_left_out_is_told_by_its_line_alone(self, tmp_path):
        """Documents are read in groups, whose numbers say nothing."""
        line = json.dumps(windows.document("a", 0, 1, 2))
        path = tmp_path / "text.jsonl"
        path.write_text(f"{line}\n{line}\n{{\n{line}\n", encoding="utf-8")
        (bad,) = make_records(tmp_path, path, windows.write_vocab(tmp_path))["bad_examples"]
        assert bad.startswith(f"{path}:3: malformed JSON") and "element" not in bad

    def test_repeated_documents_are_counted_and_kept(self, tmp_path):
        texts = ["One two.", "Two.", "One\n two.", "one two.", "Two."]
        counter = examples.RepeatCounter()
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
        (tmp_path / "b.jsonl").write_text(lines + "{broken\n", encoding="utf-8")
        for name, expected in (("a.jsonl", 2), ("b.jsonl", 7)):
            found = list(counter.counting(examples.read_groups)(str(tmp_path / name)))
            assert [x["text"] for x in found[-1]["documents"]] == texts
            assert counter.num_repeated == expected  # Across files, too.
        assert counter.num_documents == 10 and not counter.is_full

    def test_as_many_texts_are_remembered_as_there_is_room_for(self, tmp_path):
        texts = ["a", "b", "c", "c", "a"]
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
        counter = examples.RepeatCounter(most=2)
        list(counter.counting(examples.read_groups)(str(tmp_path / "a.jsonl")))
        assert counter.num_repeated == 1 and counter.is_full

    def test_records_statistics_and_a_line_tell_of_repeats(self, tmp_path, caplog):
        vocab, text = windows.write_vocab(tmp_path), tmp_path / "text.jsonl"
        document = json.dumps(windows.document("a", 0, 1, 2, 3))
        text.write_text(f"{document}\n" * 3, encoding="utf-8")
        statistics = make_records(tmp_path, text, vocab)
        assert statistics["documents_repeated"] == 2 and statistics["documents"] == 3
        kept = json.loads((tmp_path / "text.stats.json").read_text())
        assert kept["documents_repeated"] == 2
        assert "2 of 3 documents have the text of an earlier one. All were kept." in caplog.text

    def test_what_begins_as_json_and_is_none_is_an_error(self, tmp_path):
        (tmp_path / "a.txt").write_text('{"quoted" prose} is none.\n\nMore.\n', encoding="utf-8")
        with pytest.raises(ValueError, match="a.txt: malformed JSON at line 1, column 11"):
            read(tmp_path / "a.txt")

    def test_tables_and_columns_have_a_text(self, tmp_path):
        (tmp_path / "a.CSV").write_text("text,id\nOne.,7\n", encoding="utf-8")
        columns = pyarrow.table({"text": ["One."], "id": ["7"]})
        pyarrow.parquet.write_table(columns, tmp_path / "a.parquet")
        for name in ("a.CSV", "a.parquet"):
            assert read(tmp_path / name) == [{"id": "7", "text": "One."}]
        (tmp_path / "b.csv").write_text("txt,id\nOne.,7\n", encoding="utf-8")
        (bad,) = examples.read_groups(str(tmp_path / "b.csv"))
        assert bad["error"].endswith("no object with a string `text`: its fields are ['id', 'txt']")

    def test_a_folder_has_texts(self, tmp_path, caplog):
        for name in ("b.txt", "part/a.TXT", "part/._a.txt", "notes.md"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("One.\n\nTwo.\n", encoding="utf-8")
        ids = [document["id"] for document in read(tmp_path)]
        names = [f"{tmp_path}/b.txt", f"{tmp_path}/part/a.TXT"]
        assert ids == [f"{name}:{line}" for name in names for line in (1, 3)]
        assert "left out: 1 hidden (such as part/._a.txt), 1 not .txt" in caplog.text

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("{", "malformed JSON at column"),
            ('{"txt": 1}', "a string `text`"),
            ("{\udcff}", "invalid UTF-8 at character 2"),
        ],
    )
    def test_a_malformed_line_is_named_and_the_others_are_read(self, tmp_path, line, message):
        path = tmp_path / "text.jsonl"
        text = f'{line}\n{{"text": "Two."}}\n'
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        bad, good = examples.read_groups(str(path))
        assert bad["error"].startswith(f"{path}:1: ") and message in bad["error"]
        assert [document["text"] for document in good["documents"]] == ["Two."]

    def test_a_file_that_is_no_text_is_named(self, tmp_path):
        path = tmp_path / "latin.txt"
        path.write_bytes(b"One.\n\ncaf\xe9\n")
        with pytest.raises(ValueError, match=f"{path}:3: invalid UTF-8 at character 4"):
            read(path)

    def test_a_broken_gzip_file_is_named(self, tmp_path):
        path = tmp_path / "cut.txt.gz"
        path.write_bytes(gzip.compress(b"One.\n" * 1000)[:-12])
        with pytest.raises(ValueError, match=f"{path}: broken gzip file"):
            read(path)

    def test_a_group_ends_when_it_is_large_enough(self, tmp_path):
        path = tmp_path / "text.jsonl"
        path.write_text("".join(json.dumps({"text": "x" * 40}) + "\n" for _ in range(5)))
        groups = examples.read_groups(str(path), characters_per_group=80)
        assert [len(group["documents"]) for group in groups] == [2, 2, 1]


class TestWindows:
    def test_a_window_holds_documents_their_sentences_and_words(self, tokenizer):
        documents = [{"id": "a", "text": "The rose grows. Red."}, {"id": "b", "text": "Town."}]
        (window,) = windows.make_windows(
            documents, tokenizer, long_seq_length=12, global_seq_length=5
        ).features
        pieces = ["the", "rose", "grow", "##s", ".", "red", ".", "town", "."]
        ids = tokenizer.convert_tokens_to_ids(pieces)
        assert window == {
            "long_token_ids": ids + [0, 0, 0],
            "long_word_starts": [1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0],
            "sentence_ids": [0, 0, 0, 0, 0, 1, 1, 2, 2, -1, -1, -1],
            "long_breakpoints": [0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0],
            "global_token_ids": [1, 1, 1, 0, 0],
            "global_breakpoints": [0, 1, 1, 0, 0],
        }

    def test_fixed_blocks_ignore_sentences_and_words_and_end_with_the_window(self, tokenizer):
        documents = [{"id": "a", "text": "The rose grows. Red."}]
        given = {"fixed_block_len": 3, "long_seq_length": 5, "min_sentences": 2}
        first, second = windows.make_windows(documents, tokenizer, **given).features
        ids = tokenizer.convert_tokens_to_ids(["the", "rose", "grow", "##s", ".", "red", "."])
        assert first["long_token_ids"] + second["long_token_ids"][:2] == ids
        assert first["sentence_ids"] == [0, 0, 0, 1, 1]
        assert first["long_word_starts"] == [1, 1, 1, 1, 1]  # The rest of a word is one there.
        assert first["global_token_ids"][:3] == [1, 1, 0]
        assert second["sentence_ids"] == [0, 0, -1, -1, -1]

    def test_documents_of_too_few_sentences_are_dropped_and_counted(self, tokenizer):
        documents = [windows.document("long", *range(7)), windows.document("short", *range(6))]
        made = windows.make_windows(documents, tokenizer, min_sentences=7)
        assert made.counts["documents"] == 2
        assert made.counts["documents_too_short"] == 1
        assert made.counts["sentences"] == 7

    def test_without_packing_each_document_has_windows_of_its_own(self, tokenizer):
        documents = [windows.document("a", 0), windows.document("b", 1)]
        assert len(windows.make_windows(documents, tokenizer).features) == 1
        assert len(windows.make_windows(documents, tokenizer, pack_documents=False).features) == 2

    def test_a_sentence_longer_than_a_window_is_cut_between_words(self, tokenizer):
        text = "Grows grows grows grows."  # Pieces: grow ##s, four times, and the full stop.
        made = windows.make_windows([{"id": "a", "text": text}], tokenizer, long_seq_length=5)
        assert made.counts["documents_split"] == 1
        lengths = [sum(i >= 0 for i in w["sentence_ids"]) for w in made.features]
        assert lengths == [4, 5]
        assert all(window["long_word_starts"][0] == 1 for window in made.features)

    def test_sentence_pieces_start_words_at_the_underline(self):
        class Pieces:
            sp_model = True

            def tokenize(self, text):
                return text.split("|")

            def convert_tokens_to_ids(self, tokens):
                return list(range(len(tokens)))

        (sentence,) = features.tokenize_sentences("▁the|▁ro|se|.", Pieces(), lambda text: [text])
        assert sentence.word_starts == (1, 1, 0, 0)

    @given(
        st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=16), min_size=1, max_size=8),
        st.integers(3, 60),
        st.integers(2, 12),
        st.none() | st.integers(1, 9),
    )
    @settings(max_examples=60)
    def test_no_token_is_lost_and_parts_stay_whole(
        self, tokenizer, numbers, long_len, global_len, block_len
    ):
        documents = [windows.document(str(i), *row) for i, row in enumerate(numbers)]
        made = windows.make_windows(
            documents,
            tokenizer,
            long_seq_length=long_len,
            global_seq_length=global_len,
            fixed_block_len=block_len,
        )
        expected = sorted(token for d in documents for token in tokenizer.tokenize(d["text"]))
        found, num_parts = [], 0
        for window in made.features:
            real = [i for i, sentence in enumerate(window["sentence_ids"]) if sentence >= 0]
            assert real == list(range(len(real)))
            found += tokenizer.convert_ids_to_tokens(window["long_token_ids"][: len(real)])
            ends = [i for i, last in enumerate(window["long_breakpoints"]) if last]
            global_ends = [i for i, last in enumerate(window["global_breakpoints"]) if last]
            assert [window["sentence_ids"][end] for end in ends] == global_ends
            assert sum(window["global_token_ids"]) == global_ends[-1] + 1
            assert len(window["long_token_ids"]) == long_len
            assert len(window["global_token_ids"]) == global_len
            num_parts += len(ends)
        assert sorted(found) == expected
        assert num_parts == made.counts["document_parts"]


def test_real_sentencepiece_model_marks_words(tmp_path):
    model = "tests/reference/small/tokenization/tiny_digit_comma.model"
    tokenizer = tokenization.FullTokenizer(None, spm_model_file=model)
    (sentence,) = features.tokenize_sentences("the cat, the cat", tokenizer, lambda t: [t])
    pieces = tokenizer.convert_ids_to_tokens(sentence.token_ids)
    starts = [piece.startswith("▁") for piece in pieces]
    assert sum(starts) >= 4
    assert [bool(start) for start in sentence.word_starts] == starts
