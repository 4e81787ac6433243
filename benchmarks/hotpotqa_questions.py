"""Questions for `real_questions`: their split, answers without a model, and initial models."""

import hashlib
import json
import random

import etcmodel
from benchmarks import programs
from etcmodel import atomic_files
from etcmodel.tasks.hotpotqa import metrics

__all__ = ["BASELINES", "PRETRAINED", "documents", "make", "split", "with_fewer_distractors"]


def split(questions, num_test):
    """(training, test): lists of questions, by the order of their ids' hashes.

    Raises:
        ValueError: if there are no more than `num_test`.
    """
    if len(questions) <= num_test:
        raise ValueError(
            f"`num_test` must be below the number of questions, {len(questions)}. "
            f"Received: {num_test}"
        )
    ordered = sorted(questions, key=lambda x: hashlib.sha256(x["_id"].encode()).digest())
    return ordered[num_test:], ordered[:num_test]


def with_fewer_distractors(questions, distractors, copies):
    """Training questions with the paragraphs of their facts and a few others, in their order.

    Args:
        questions: list of dicts of HotpotQA's form.
        distractors: int. Others of a question, drawn by the hash of its id; 0 for all.
        copies: int. Times that each question is taken; their other paragraphs differ.
    Returns:
        List of dicts, with ids of their own where there are copies.
    """
    return [
        _with_fewer(question, distractors, copy) for copy in range(copies) for question in questions
    ]


def _with_fewer(question, distractors, copy):
    name = f"{question['_id']}-{copy}" if copy else question["_id"]
    right = {title for title, _ in question["supporting_facts"]}
    others = [title for title, _ in question["context"] if title not in right]
    if distractors:
        others = random.Random(name).sample(others, min(distractors, len(others)))
    kept = right.union(others)
    context = [paragraph for paragraph in question["context"] if paragraph[0] in kept]
    return {**question, "_id": name, "context": context}


def _predictions(facts=lambda example: (), answer=lambda example: ""):
    """The function that predicts what the functions of one example give."""

    def predict(test):
        return {
            "answer": {x.example_id: answer(x) for x in test},
            "sp": {x.example_id: list(facts(x)) for x in test},
        }

    return predict


def _first_sentences(example):
    return ([x.title, 0] for x in example.paragraphs)


def _of_named_paragraphs(example):
    """The first sentences of paragraphs that the question names; of all where it names none."""
    named = [x for x in example.paragraphs if _is_named(example, x)]
    return ([x.title, 0] for x in named or example.paragraphs)


def _of_likest_paragraphs(example):
    """The first sentences of the two paragraphs with most of the question's words."""
    return ([x.title, 0] for x in _by_likeness(example, example.paragraphs)[:2])


def _likest_other_title(example):
    """The title of the paragraph that is likest the question, of those that it does not name."""
    others = [x for x in example.paragraphs if not _is_named(example, x)]
    return _name(_by_likeness(example, others or example.paragraphs)[0])


def _name(paragraph):
    return paragraph.title.partition(" (")[0]


def _is_named(example, paragraph):
    return _name(paragraph).lower() in example.question.lower()


def _by_likeness(example, paragraphs):
    """The paragraphs by how many of the question's words they have, those with most first."""
    words = set(metrics.normalize_answer(example.question).split())

    def common(paragraph):
        text = " ".join([paragraph.title, *paragraph.sentences])
        return len(words & set(metrics.normalize_answer(text).split()))

    return sorted(paragraphs, key=common, reverse=True)


# What needs no model: functions from the examples to predictions in the official format.
BASELINES = {
    "every first sentence": _predictions(_first_sentences),
    "first sentences of paragraphs that the question names": _predictions(_of_named_paragraphs),
    "first sentences of the two paragraphs likest the question": _predictions(
        _of_likest_paragraphs
    ),
    "title of the likest paragraph that the question does not name": _predictions(
        answer=_likest_other_title
    ),
}


_PROGRAMS = "etcmodel.pretrain"
_LONG, _GLOBAL = 512, 32  # Tokens of a window, which holds a paragraph.
_WINDOWS_A_STEP = 8
_MIN_SENTENCES = 2  # What contrasts a sentence with others needs; most paragraphs have a few.


def documents(questions):
    """The paragraphs as documents for pre-training, each once: list of {"text": str}.

    Args:
        questions: list of dicts of HotpotQA's form.
    """
    texts = (
        " ".join([f"{title}.", *(sentence.strip() for sentence in sentences)])
        for question in questions
        for title, sentences in question["context"]
    )
    return [{"text": text} for text in dict.fromkeys(texts)]


def pretrain(questions, start, end, folder, *, num_steps, learning_rate, mixed_precision):
    """Trains a masked language model and contrastive predictive coding (CPC).

    Args:
        questions: list of dicts of HotpotQA's form, whose paragraphs are read.
        start: path of the folder of the model to begin with.
        end: path of the folder that is written.
        folder: path. Gets the records and the run, which is resumed if it exists.
        num_steps: int, of eight paragraphs each.
        learning_rate: float.
        mixed_precision: str.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{json.dumps(x)}\n" for x in documents(questions)]
    atomic_files.write_text(str(folder / "paragraphs.jsonl"), lines)
    programs.run(
        f"{_PROGRAMS}.preprocess",
        input_pattern=folder / "paragraphs.jsonl",
        output_prefix=folder / "windows",
        vocab_file=start / "vocab.txt",
        long_seq_length=_LONG,
        global_seq_length=_GLOBAL,
        min_sentences=_MIN_SENTENCES,
        pack_documents=False,  # A model from BERT has absolute positions.
        num_shards=1,
    )
    written = json.loads((folder / "windows.stats.json").read_text("utf-8"))["examples_written"]
    programs.run(
        f"{_PROGRAMS}.run_pretraining",
        model_config_file=start / "config.json",
        init_checkpoint=start,
        vocab_file=start / "vocab.txt",
        train_data=folder / "windows-*",
        output_dir=folder / "run",
        optimizer="adamw",
        learning_rate=learning_rate,
        train_batch_size=_WINDOWS_A_STEP,
        num_train_epochs=programs.epochs(num_steps, _WINDOWS_A_STEP, written),
        cpc_temperature=3.0,  # Takes less from the language model.
        mixed_precision=mixed_precision,
        random_seed=0,
    )
    programs.run(
        f"{_PROGRAMS}.run_pretraining",
        run_mode="save_pretrained",
        output_dir=folder / "run",
        pretrained_dir=end,
    )


PRETRAINED = "pretrained"
# What HotpotQA's inputs have beyond BERT's: relations, token types, sentences' own global tokens.
_STRUCTURE = {
    "relative_pos_max_distance": 12,
    "relative_vocab_size": 32,
    "segment_vocab_size": 16,
    "use_hard_g2l_mask": True,
    # A few hundred steps are too few to overfit, and go faster without.
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
# Initial logits of attention's preferences; 245 questions are too few to learn them.
_LINK_LOGIT, _SAME_PARAGRAPH_LOGIT = 2.0, 1.0
_EDGE_LOGITS = {"same_word_in_paragraph": 2.0, "same_word": 3.0, "title": 3.0, "title_back": 3.0}


def _prefer_structure(encoder):
    """Makes attention initially prefer links and edges, as BERT has not learned any labels."""
    from etcmodel.models import initialization
    from etcmodel.tasks.hotpotqa import model

    labels = encoder.config.relation_labels(*model.EDGE_LABELS)
    initialization.prefer_labels(
        encoder,
        {labels.linked: _LINK_LOGIT},
        global_logits={
            **dict.fromkeys(range(labels.num_positions), _SAME_PARAGRAPH_LOGIT),
            **{labels[name]: logit for name, logit in _EDGE_LOGITS.items()},
        },
        embedding_scale=0.0,
    )


def make(options, folder, train, *, has_pretrained):
    """Writes the initial models, unless they exist.

    Args:
        options: `real_questions.RealQuestionsOptions`.
        folder: pathlib.Path, of which each gets a folder of its name.
        train: list of dict, the questions on whose paragraphs one is pre-trained.
        has_pretrained: bool. Whether that one is wanted.
    """
    if not (folder / "random" / "config.json").exists():
        import tf_keras  # Imports TensorFlow, which takes seconds.

        from etcmodel.models import encoders

        lifted = etcmodel.from_pretrained(
            options.bert, local_radius=options.local_radius, **_STRUCTURE
        )
        tf_keras.utils.set_random_seed(0)
        random_model = encoders.build_encoder(lifted.config)
        for name, encoder in (("lifted", lifted), ("random", random_model)):
            _prefer_structure(encoder)
            encoder.save_pretrained(str(folder / name), lifted.processor)
    if has_pretrained and not (folder / PRETRAINED / "config.json").exists():
        pretrain(
            train,
            folder / "lifted",
            folder / PRETRAINED,
            folder / "pretraining",
            num_steps=options.num_pretrain_steps,
            learning_rate=options.pretrain_learning_rate,
            mixed_precision=options.mixed_precision,
        )
