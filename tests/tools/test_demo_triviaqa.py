"""What the invented questions promise to those who train and test on them."""

import json
import pathlib

from etcmodel.tasks.triviaqa import examples
from etcmodel.tools import make_demo_data
from etcmodel.tools.demos import triviaqa


def test_one_of_two_documents_tells_the_answer_once():
    firsts = 0
    for raw in triviaqa.make_examples(split="train", num_examples=300, seed=0):
        example = examples.parse_example(raw)
        found = [examples.find_answers(page.text, example.answers) for page in example.pages]
        assert sorted(map(len, found)) == [0, 1], raw
        firsts += len(found[0])
        assert all(
            examples.normalize_answer(x) in example.answers for x in raw["Answer"]["Aliases"]
        )
    assert 100 < firsts < 200


def test_files_are_in_the_official_layout(tmp_path):
    paths = make_demo_data.make_demo_data(
        dataset="triviaqa", output_dir=str(tmp_path), num_train=9, num_dev=3, seed=0
    )
    whole = json.loads(pathlib.Path(paths["dev"]).read_text(encoding="utf-8"))
    assert whole["Domain"] == "Wikipedia" and not whole["VerifiedEval"]
    made = triviaqa.make_examples(split="dev", num_examples=3, seed=0)
    names = set()
    for question, raw in zip(whole["Data"], made, strict=True):
        for page, given in zip(question["EntityPages"], raw["EntityPages"], strict=True):
            path = tmp_path / "evidence" / "wikipedia" / page["Filename"]
            assert {**page, "Text": path.read_text(encoding="utf-8")} == given
            names.add(page["Filename"])
        assert {**question, "EntityPages": raw["EntityPages"]} == raw
    assert len(names) == 6 and len(list((tmp_path / "evidence").rglob("*.txt"))) == 24
