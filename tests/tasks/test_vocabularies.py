"""A vocabulary that does not fit is refused by its name before anything is converted."""

import pytest

from etcmodel.pretrain import features as pretrain
from etcmodel.tasks.classification import features as classification
from etcmodel.tasks.coreference import features as coreference
from etcmodel.tasks.hotpotqa import config as hotpotqa_config
from etcmodel.tasks.hotpotqa import features as hotpotqa
from etcmodel.tasks.nq import features as nq
from etcmodel.tasks.numerical_reasoning import features as numerical_reasoning
from etcmodel.tasks.openkp import features as openkp
from etcmodel.tasks.squad import features as squad
from etcmodel.tasks.token_classification import features as token_classification
from etcmodel.tasks.triviaqa import features as triviaqa
from etcmodel.tasks.wikihop import config as wikihop_config
from etcmodel.tasks.wikihop import features as wikihop
from etcmodel.text.byte_bpe import ByteLevelTokenizer
from etcmodel.text.word_vocabulary import build_vocabulary
from tests import vocabularies
from tests.reference import cases
from tests.vocabularies import SPECIAL

# By task: what makes its converter, the pieces it needs, and options.
TASKS = {
    "hotpotqa": (hotpotqa, ("[PAD]", "[UNK]", "[CLS]"), {}),
    "wikihop": (wikihop, ("[PAD]", "[UNK]"), {}),
    "nq": (nq, SPECIAL, {}),
    "openkp": (openkp, ("[PAD]", "[UNK]"), {}),
    "squad": (squad, SPECIAL, {}),
    "triviaqa": (triviaqa, SPECIAL, {"evidence_dir": None}),
    "coreference": (coreference, SPECIAL, {}),
    "classification": (classification, SPECIAL, {"labels": ("a", "b")}),
    "token_classification": (token_classification, SPECIAL, {"labels": ("O", "B-A")}),
    "numerical_reasoning": (numerical_reasoning, SPECIAL, {}),
    "pretrain": (pretrain, ("[UNK]",), {}),
    "pretrain texts": (pretrain, ("[UNK]", "[CLS]", "[SEP]"), {"windows": "text"}),
}
CASES = [(task, piece) for task, (_, pieces, _) in TASKS.items() for piece in (None, *pieces)]


def factory_of(module, path, fields):
    return module.ConverterFactory(
        vocab_file=str(path),
        spm_model_file="",
        do_lower_case=True,
        fields={"long_seq_length": 64, "global_seq_length": 64, **fields},
    )


@pytest.mark.parametrize(("task", "missing"), CASES)
def test_a_vocabulary_without_a_piece_that_is_needed_is_named(tmp_path, task, missing):
    module, _, fields = TASKS[task]
    # The released models' vocabularies have these pieces for HTML tags.
    pieces = [*build_vocabulary(["a"]), "[unused102]", "[unused103]", "@", "\\"]
    path = vocabularies.write(tmp_path, [x for x in pieces if x != missing])
    factory = factory_of(module, path, fields)
    if missing is None:
        assert factory.settings()["vocab_size"] == len(set(pieces))
        return
    with pytest.raises(ValueError) as error_info:
        factory()
    message = str(error_info.value)
    assert path in message and missing in message and "\n" not in message


@pytest.mark.parametrize("task", ["hotpotqa", "nq", "wikihop"])
def test_one_without_the_lines_of_ids_that_settings_name_is_refused(tmp_path, task):
    module, pieces, fields = TASKS[task]
    if task == "nq":  # Tags of HTML are pieces of their own.
        tags = ["[unused102]", "[unused103]"]
        with pytest.raises(ValueError, match=r"lacks the tokens \[unused102\], \[unused103\]"):
            factory_of(module, vocabularies.write(tmp_path, pieces), fields)()
        pieces = [*pieces, *tags]
    factory = factory_of(module, vocabularies.write(tmp_path, pieces), fields)
    with pytest.raises(ValueError, match=r"`\w+_token_id` must be an id of the vocabulary"):
        factory()


# What features with global tokens of their own say of byte-level BPE: what else there is.
MARKS = {
    "hotpotqa": ({"evidence_as": "marks"}, hotpotqa_config.MARKS),
    "wikihop": ({"candidates_as": "marks"}, wikihop_config.MARKS),
}
OTHERWISE = {
    "hotpotqa": ", or --evidence_as=marks, which takes any",
    "wikihop": ", or --candidates_as=marks, which takes any",
    "nq": "",
    "openkp": "",
}
IN_DIGITS = "numerical_reasoning"  # Needs ten pieces, and names them.


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory):
    """A published ModernBERT's kind of vocabulary, with [PAD], [UNK], [CLS], [SEP], and marks."""
    tokenizer = ByteLevelTokenizer.from_pretrained(cases.topic_folder("modernbert") / "tokenizer")
    # Those by which Natural Questions would find its HTML tags.
    tokenizer.add_tokens(["[unused102]", "[unused103]"])
    for _, marks in MARKS.values():
        tokenizer.add_tokens(marks)
    folder = tmp_path_factory.mktemp("modernbert")
    tokenizer.save_pretrained(folder)
    return folder / "tokenizer.json"


@pytest.mark.parametrize("task", sorted(TASKS.keys() - {IN_DIGITS}))
def test_byte_level_pieces_are_refused_where_features_are_not_made_for_them(task, byte_level):
    module, _, fields = TASKS[task]
    factory = factory_of(module, byte_level, fields)
    if task not in OTHERWISE:
        assert factory.settings()["tokenizer"] == "byte_level_bpe"
        return
    told = f"'{byte_level}' is byte-level BPE .* a model that has it{OTHERWISE[task]}."
    with pytest.raises(ValueError, match=rf"^The vocabulary {told}$"):
        factory()
    if task in MARKS:
        marked, _ = MARKS[task]
        assert factory_of(module, byte_level, marked).settings()["tokenizer"] == "byte_level_bpe"
