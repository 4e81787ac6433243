"""Trains a small question answering model on generated documents and exports it for serving.

The documents describe fictional regions in a few hundred words of English (`demos.region`);
training and evaluation use different ones. The model marks the answer and its supporting sentences.
Also evaluates the model, and prints the command that serves it with a page for asking questions
about any text. Takes a few minutes on two cores.
"""

import dataclasses
import re
import time

import numpy as np

from etcmodel import atomic_files, quiet
from etcmodel.options import Options, option, run_program
from etcmodel.tasks.hotpotqa import metrics
from etcmodel.tools.demos import first_weights, folders, region

ETC_CONFIG = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "local_radius": 16,  # About a sentence on each side, of documents of up to 60 sentences.
    "relative_pos_max_distance": 8,
    "relative_vocab_size": 20,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    # The released models are 12 times wider: a narrow layer needs larger weights to begin with.
    "initializer_range": 0.1,
    "share_qkv_projections": False,
    "use_hard_g2l_mask": True,
    "use_pre_activation_order": True,
}
# Each token of the question has a global token, through which the whole text can attend to it.
PROCESSOR = {"question_globals": "tokens", "max_long_len": 1024, "stride": 128}
# Small regions, with short texts, teach the most per unit of time.
_SMALL = {"num_towns": 2, "num_people": 2}
_BATCH_SIZE = 16
_LEARNING_RATE = 4e-3
_EVIDENCE_WEIGHT = 20.0  # Its loss is a mean over sentences, hardly any of which are evidence.
_STEPS_PER_LINE = 50
_SHOWN = ("loss", "start_accuracy", "end_accuracy", "evidence_loss")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedDemoOptions(Options):
    """The size of the demo."""

    output_dir: str = option(
        "served_demo_output", "Directory to create; an existing one is replaced."
    )
    num_train: int = option(5600, "Number of training questions on short documents.", lower_bound=1)
    num_long_train: int = option(
        1600, "Number of additional training questions, on long documents.", lower_bound=1
    )
    num_dev: int = option(300, "Number of evaluation questions, on long documents.", lower_bound=1)
    num_hidden_layers: int = option(
        ETC_CONFIG["num_hidden_layers"], "Number of layers of the model.", lower_bound=1
    )
    seed: int = option(0, "Seed of data and training.")


def evidence_targets(batch):
    """Labels for the global tokens of sentences in `extra["evidence"]`.

    Args:
        batch: `ProcessedBatch` of examples of `demos.region`.
    Returns:
        int32 0/1 [batch, global_len]; -1 for tokens that are not sentences.
    """
    targets = np.full(batch["global_token_ids"].shape, -1, np.int32)
    for encoding in batch.encodings:
        document = encoding.document
        for place, number in enumerate(encoding.global_blocks, encoding.global_place):
            block = document.blocks[number] if number >= 0 else None
            if block is not None and block.kind == "sentence":
                name = document.text_names[block.text]
                targets[encoding.row, place] = any(
                    name.endswith(f".{stated['text']}") and stated["start"] == block.start
                    for stated in document.extra["evidence"]
                )
    return targets


def guess(example):
    """A baseline answer without a model: str.

    It is the last name or number that is not in the question, in the first of the sentences that
    share the most words with the question.
    """
    asked = set(_words(example["question"]))
    sentences = re.split(r"(?<=[.!?])\s+", " ".join(example["documents"]))
    best = max(sentences, key=lambda sentence: len(asked & set(_words(sentence))))
    found = re.findall(r"[A-Z]\w+(?: [A-Z]\w+)*|\d+(?: meters| miles)?", best)
    others = [x for x in found if not asked & set(_words(x))]
    return others[-1] if others else best.split()[-1]


def _words(text):
    return re.findall(r"\w+", text.lower())


def scores(examples, answers, evidence=None):
    """Mean scores of answers.

    Args:
        examples: of `demos.region`.
        answers: list of str.
        evidence: list of sets of predicted evidence sentences, (document, start).
    Returns:
        dict of float in [0, 1]: `em` and `f1` of answers, as in HotpotQA; with evidence also
        `evidence_em` and `evidence_f1` of these sets.
    """
    truths = [region.content(x, x["extra"]["answer"]) for x in examples]
    found = [metrics.answer_score(*pair) for pair in zip(answers, truths, strict=True)]
    means = {name: float(np.mean([getattr(x, name) for x in found])) for name in ("em", "f1")}
    if evidence is None:
        return means
    facts = [{_sentence(place) for place in x["extra"]["evidence"]} for x in examples]
    found = [metrics.supporting_facts_score(*pair) for pair in zip(evidence, facts, strict=True)]
    of_facts = {f"evidence_{x}": float(np.mean([getattr(y, x) for y in found])) for x in means}
    return {**means, **of_facts}


def _sentence(place):
    return region.document_of(place), place["start"]


def make_model(folder, num_layers, seed):
    """A new model, with a processor for the demo's vocabulary, which is written to the folder."""
    import tf_keras  # TensorFlow takes seconds to import, which `--help` need not wait for.

    from etcmodel import EtcConfig, EtcForQuestionAnswering, EtcProcessor
    from etcmodel.models import initialization

    vocabulary = folder / "vocab.txt"
    atomic_files.write_text(str(vocabulary), [f"{piece}\n" for piece in region.vocabulary()])
    processor = EtcProcessor(vocabulary, **PROCESSOR)
    sizes = {**ETC_CONFIG, "vocab_size": processor.vocab_size, "num_hidden_layers": num_layers}
    tf_keras.utils.set_random_seed(seed)
    model = EtcForQuestionAnswering(EtcConfig(**sizes), answer_types=())
    model.processor = processor
    initialization.mimetic_initialization(model.encoder, seed)
    first_weights.prefer_identity_and_links(model.encoder)
    return model


def train(model, stages):
    """Trains on the lists of examples of `stages` in sequence, each once."""
    import tf_keras

    from etcmodel.text.targets import answer_targets

    def targets(batch):
        return {**answer_targets(batch), "evidence": evidence_targets(batch)}

    num_steps = sum(-(-len(examples) // _BATCH_SIZE) for examples in stages)
    rate = tf_keras.optimizers.schedules.PolynomialDecay(_LEARNING_RATE, num_steps, 0.0)
    model.compile(
        tf_keras.optimizers.AdamW(rate, weight_decay=0.01, global_clipnorm=1.0),
        loss_weights={"start": 1.0, "end": 1.0, "evidence": _EVIDENCE_WEIGHT},
    )

    def report(unused_batch, logs):
        step = int(model.optimizer.iterations)
        if step % _STEPS_PER_LINE == 0 or step == num_steps:
            figures = (f"{name}={logs[name]:.3f}" for name in _SHOWN)
            print(f"step {step} of {num_steps}: {' '.join(figures)}", flush=True)
            model.reset_metrics()  # The next line covers only the next steps.

    progress = tf_keras.callbacks.LambdaCallback(on_batch_end=report)
    for examples in stages:
        batches = model.processor.dataset(examples, _BATCH_SIZE, targets=targets)
        model.fit(batches, verbose=0, callbacks=[progress])


def ask(export, examples):
    """The predictions of an export: (answers, evidence) for `scores`."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  The export needs its operations.

    signature = tf.saved_model.load(str(export)).signatures["answer"]
    answers, evidence = [], []
    for start in range(0, len(examples), _BATCH_SIZE):
        batch = examples[start : start + _BATCH_SIZE]
        documents = tf.ragged.constant([x["documents"] for x in batch]).to_tensor()
        question = tf.constant([x["question"] for x in batch])
        outputs = signature(question=question, documents=documents)
        found = {name: tensor.numpy() for name, tensor in outputs.items()}
        answers += [answer.decode() for answer in found["answer"]]
        sentences = np.stack([found["evidence_document"], found["evidence_start"]], axis=-1)
        are_taken = found["evidence_probability"] >= 0.5
        for of_one, is_taken in zip(sentences, are_taken, strict=True):
            evidence.append({tuple(sentence) for sentence in of_one[is_taken].tolist()})
    return answers, evidence


def examples(seed):
    """Three example questions about documents outside the training and evaluation sets.

    Returns:
        list of dict of `question` and `documents`. The questions begin with different words, and
        two sentences lead to each answer.
    """
    found = region.make_examples(split="dev", num_examples=100, seed=seed + 3)
    of_two = [x for x in found if len(x["extra"]["evidence"]) == 2]
    by_first_word = {x["question"].split()[0]: x for x in reversed(of_two)}
    chosen = list(by_first_word.values())[-3:]
    return [{"question": x["question"], "documents": x["documents"]} for x in reversed(chosen)]


def main(options):
    """Runs the demo that `ServedDemoOptions` describe."""
    start = time.monotonic()
    quiet.show_own_messages()
    folder = folders.new_folder(options.output_dir)
    seed, make = options.seed, region.make_examples
    short = make(split="train", num_examples=options.num_train, seed=seed, **_SMALL)
    long = make(split="train", num_examples=options.num_long_train, seed=seed + 1)
    dev = make(split="dev", num_examples=options.num_dev, seed=seed)
    num_words = np.mean([sum(len(text.split()) for text in x["documents"]) for x in dev])
    print(
        f"{len(short)} questions on short documents and {len(long)} on long ones to train on, "
        f"{len(dev)} to measure on, of other names, on {num_words:.0f} words each.",
        flush=True,
    )
    model = make_model(folder, options.num_hidden_layers, seed)
    train(model, [short, long])

    from etcmodel.serving import export_text_model  # With TensorFlow.

    directory = str(folder / "served" / "1")
    export = export_text_model(model, directory, examples=examples(seed))
    found = scores(dev, *ask(export, dev))
    baseline = scores(dev, [guess(x) for x in dev])
    print(f"\nAsk it about any text:\n\n$ etcmodel serve --model_dir={folder / 'served'}")
    figures = " ".join(f"{name}={value:.3f}" for name, value in found.items())
    print(
        f"\nserved demo: {figures} baseline_em={baseline['em']:.3f} "
        f"baseline_f1={baseline['f1']:.3f} seconds={time.monotonic() - start:.0f}"
    )


if __name__ == "__main__":
    run_program(ServedDemoOptions, main)
