"""Tiny exports of tasks with random weights, and raw examples of their data sets."""

import dataclasses

from etcmodel import finetuning
from etcmodel.tasks.classification.predict import ClassificationPredictor
from etcmodel.tasks.coreference.predict import CoreferencePredictor
from etcmodel.tasks.hotpotqa.predict import HotpotQaPredictor
from etcmodel.tasks.majority_tagging.predict import MajorityPredictor
from etcmodel.tasks.nq.predict import NqPredictor
from etcmodel.tasks.numerical_reasoning.predict import NumericalPredictor
from etcmodel.tasks.openkp.predict import OpenKpPredictor
from etcmodel.tasks.squad.predict import SquadPredictor
from etcmodel.tasks.token_classification.predict import TokenClassificationPredictor
from etcmodel.tasks.triviaqa.predict import TriviaQaPredictor
from etcmodel.tasks.wikihop.predict import WikiHopPredictor
from etcmodel.text.word_vocabulary import build_vocabulary
from etcmodel.tools.demos import majority_tagging, numerical_reasoning
from tests.models import etcs
from tests.models.gmat import small as gmat
from tests.models.random_weights import by_number
from tests.reference.small_files import strings_in
from tests.tasks.hotpotqa import raw_examples as hotpotqa
from tests.tasks.nq import raw_examples as nq
from tests.tasks.openkp import pages
from tests.tasks.triviaqa import questions
from tests.tasks.wikihop import raw_examples as wikihop


@dataclasses.dataclass(frozen=True)
class Task:
    """A predictor's class, options of the task, raw examples without ids, and the field of these.

    `predictions` takes what `Predictor.predict` returns to a list as the server's. Of a model that
    is a GMAT, `pieces` are the vocabulary.
    """

    predictor: type
    options: dict
    raw: list
    id_field: str
    predictions: object = lambda found: list(found.values())
    pieces: tuple = ()


def _hotpotqa_of(found):
    pairs = zip(found["answer"].values(), found["sp"].values(), strict=True)
    return [{"answer": answer, "sp": facts} for answer, facts in pairs]


def _without(*names):
    return lambda found: [{k: v for k, v in one.items() if k not in names} for one in found]


_NO_LABELS = {"answer": None, "supporting_facts": None}
_LONG = " ".join(["the green king of red mud ."] * 12)
_QUESTIONS = [
    wikihop.raw_example(),
    wikihop.raw_example(query="Where is Tarn?", candidates=["belmark", "Hollow", "BELMARK"]),
    wikihop.raw_example(supports=[], candidates=["far", "near", "town", "mill"]),
]
_PAGES = [[{"Text": "the king of mud ."}], [{"Text": _LONG}, {"Text": "who was it"}]]
TASKS = {
    "wikihop": Task(
        WikiHopPredictor,
        {"sentence_splitter": "simple", "long_seq_length": 200, "global_seq_length": 60},
        _QUESTIONS,
        "id",
    ),
    "triviaqa": Task(
        TriviaQaPredictor,
        {"stride": 4, "long_seq_length": 24},
        [questions.raw_question(SearchResults=texts) for texts in _PAGES],
        "QuestionId",
    ),
    "squad": Task(
        SquadPredictor,
        {"doc_stride": 4, "long_seq_length": 24, "version_2_with_negative": True},
        [{"question": "who was it", "context": x} for x in ("the king of mud .", _LONG)],
        "id",
    ),
    "hotpotqa": Task(
        HotpotQaPredictor,
        {},
        [hotpotqa.raw_example(**_NO_LABELS, question=x) for x in ("what is red ?", "what sings ?")],
        "_id",
        _hotpotqa_of,
    ),
    "nq": Task(
        NqPredictor,
        {"long_seq_length": 24, "question_len": 8, "stride": 4},
        [nq.raw_example(), nq.raw_example(question_text="what is old ?")],
        "example_id",
        lambda found: _without("example_id")(found["predictions"]),
    ),
    "openkp": Task(
        OpenKpPredictor,
        {},
        [pages.page("red rose", "blue mill"), pages.page("the old mill is red")],
        "url",
    ),
    "token_classification": Task(
        TokenClassificationPredictor,
        {"labels": ("O", "B-X")},
        [{"words": ["it", "is", "good"]}, {"words": [["very", "bad"], ["it", "is"]]}],
        "id",
        lambda found: list(found.values()),
    ),
    "coreference": Task(
        CoreferencePredictor,
        {"long_seq_length": 24, "max_span_width": 3, "ffnn_size": 4, "feature_size": 2},
        [{"sentences": [["it", "is", "good"]]}, {"sentences": [["very", "bad"], ["it", "is"]]}],
        "doc_key",
        lambda found: list(found.values()),
    ),
    "classification": Task(
        ClassificationPredictor,
        {"labels": ("bad", "good")},
        [{"text": "it is good ."}, {"text": "very bad"}, {"text": "it is"}],
        "id",
        _without("id"),
    ),
    "majority_tagging": Task(
        MajorityPredictor,
        {"pairs": 2, "long_seq_length": 8},
        [{"tokens": tokens} for tokens in ([1, 2, 1, 3, 4, 3, 4, 4], [4, 3, 2, 1, 1, 2, 3, 4])],
        "id",
        pieces=tuple(majority_tagging.vocabulary(pairs=2)),
    ),
    "numerical_reasoning": Task(
        NumericalPredictor,
        {"max_answer_length": 3, "long_seq_length": 40},
        [{"question": "How many?", "passage": f"There were {x} of them."} for x in (3, 45)],
        "id",
        pieces=tuple(numerical_reasoning.vocabulary()),
    ),
}
TASKS = {
    name: dataclasses.replace(
        task, raw=[{k: v for k, v in raw.items() if k != task.id_field} for raw in task.raw]
    )
    for name, task in TASKS.items()
}


def export(name, folder):
    """Writes the export of a task to `folder / "export"`: its path, as str."""
    task = TASKS[name]
    vocab = folder / "vocab.txt"
    pieces = task.pieces or dict.fromkeys([*nq.HEAD, *build_vocabulary(strings_in(task.raw))])
    vocab.write_text("\n".join(pieces), encoding="utf-8")
    lengths = {"long_seq_length": 64, "global_seq_length": 40}
    if task.pieces:
        encoder, lengths = gmat.config(num_hidden_layers=1, vocab_size=len(pieces)), {}
    else:
        encoder = etcs.config(
            vocab_size=len(pieces),
            intermediate_size=8,
            local_radius=7,
            relative_pos_max_distance=4,
            relative_vocab_size=24,
        )
    task_class = task.predictor.task_class
    made = task_class(
        task_class.config_class(
            encoder_config=encoder, vocab_file=str(vocab), **{**lengths, **task.options}
        )
    )
    model = by_number(made.build_model(), scale=0.5)
    return finetuning.export(model, made, str(folder / "export"))
