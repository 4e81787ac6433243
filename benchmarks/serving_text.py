"""Measures the overhead of text input and exporting: an export on strings against the model alone.

  python -m benchmarks.serving_text --length=4096

A base-size classifier with random weights gets one text with words from a small vocabulary. Three
variants take turns in one process: the exported signature on strings; the exported model alone, on
the features that the processor makes from the text; and the model in a `tf.function` of this
process, traced for these lengths. Prints medians of wall-clock and CPU seconds.
"""

import dataclasses
import json
import os
import statistics
import tempfile
import time

from etcmodel.options import Options, option, run_program

__all__ = ["ServingTextOptions", "measure", "table"]

_WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", "river", "novel", "letter", "the", "##s")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServingTextOptions(Options):
    """What is read, by how large a model, and how often."""

    length: int = option(4096, "Length of the text, in long tokens.", lower_bound=16)
    hidden_size: int = option(768, "Hidden size; a multiple of 64, the head size.", lower_bound=8)
    layers: int = option(12, "Number of layers of the encoder.", lower_bound=1)
    rounds: int = option(
        5, "Number of rounds after the first, which is not counted.", lower_bound=1
    )


def measure(sides, rounds):
    """Seconds of each side in each round but the first.

    Args:
        sides: dict of str to function without arguments.
        rounds: int.
    Returns:
        dict of str to list of (seconds by the clock, seconds of the process).
    """
    seconds = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, function in sides.items():
            start = time.perf_counter(), time.process_time()
            function()
            if number:
                stop = time.perf_counter(), time.process_time()
                seconds[name].append((stop[0] - start[0], stop[1] - start[1]))
    return seconds


def table(seconds, reference):
    """A Markdown table: medians of each side, and their ratios to the reference."""
    lines = ["| | seconds | CPU seconds | ratio | ratio of CPU seconds |", "|---|---|---|---|---|"]
    medians = {
        name: [statistics.median(values) for values in zip(*pairs, strict=True)]
        for name, pairs in seconds.items()
    }
    for name, (clock, cpu) in medians.items():
        ratios = clock / medians[reference][0], cpu / medians[reference][1]
        lines.append(f"| {name} | {clock:.3f} | {cpu:.3f} | {ratios[0]:.3f} | {ratios[1]:.3f} |")
    return "\n".join(lines)


def _text(length):
    """A text of so many long tokens, special ones included: sentences of 15 words and a stop."""
    words = ["letters" if place % 5 == 4 else "river" for place in range(length)]
    pieces, sentences = 2, []
    while pieces < length:
        sentence = []
        while len(sentence) < 14 and pieces < length - 1:
            word = words[len(sentence)]
            word = word if pieces + 2 < length else "river"
            pieces += 1 + (word == "letters")
            sentence.append(word)
        sentences.append(" ".join(sentence) + ".")
        pieces += 1
    return " ".join(sentences)


def _sides(options, folder):
    import tensorflow as tf

    import etcmodel
    from etcmodel import serving
    from etcmodel.serving import export

    vocab = os.path.join(folder, "vocab.txt")
    with open(vocab, "w", encoding="utf-8") as file:
        file.write("\n".join(_WORDS))
    processor = etcmodel.EtcProcessor(vocab)
    config = etcmodel.EtcConfig(
        vocab_size=30522,
        hidden_size=options.hidden_size,
        num_hidden_layers=options.layers,
        num_attention_heads=max(options.hidden_size // 64, 1),
        intermediate_size=4 * options.hidden_size,
    )
    model = etcmodel.EtcForSequenceClassification(config)
    text = _text(options.length)
    batch = {name: tf.constant(x) for name, x in processor([text]).items()}
    path = serving.export_text_model(model, os.path.join(folder, "text"), processor)
    of_strings = tf.saved_model.load(path).signatures["classify"]
    alone = os.path.join(folder, "model")
    export.write_saved_model(alone, {}, lambda: _model_alone(model, batch))
    of_features = tf.saved_model.load(alone).signatures["features"]
    in_process = tf.function(lambda: model(batch, training=False))
    text = tf.constant([text])
    print(f"{batch['token_ids'].shape[1]} long, {batch['global_token_ids'].shape[1]} global tokens")
    return {
        "in this process": in_process,
        "exported, on features": lambda: of_features(**batch),
        "exported, on strings": lambda: of_strings(text=text),
    }


def _model_alone(model, batch):
    """A `tf.Module` of a model on features of any lengths."""
    import tensorflow as tf

    def signatures():
        specs = {
            name: tf.TensorSpec([None] * x.shape.rank, x.dtype, name) for name, x in batch.items()
        }
        function = tf.function(lambda **features: {"logits": model(features, training=False)})
        return {"features": function.get_concrete_function(**specs)}

    module = tf.Module()
    module.model_variables = list(model.variables)
    module.signatures = signatures
    return module


def main(options):
    """Measures what `ServingTextOptions` ask for, and prints a table."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = measure(_sides(options, folder), options.rounds)
    print(table(seconds, "in this process"))
    print(json.dumps({"length": options.length, "seconds": seconds}))


if __name__ == "__main__":
    run_program(ServingTextOptions, main)
