"""Trains ETC without CPC on one device and on two, into which this program splits the CPU.

The arguments are a folder and, if the divided steps are compiled by XLA, "compiled". Prints a line
of JSON: for each run the losses and the weights.
"""

import json
import pathlib
import sys

import tensorflow as tf

from tests.pretrain import runs, windows

# Devices and parts have different numbers of masked tokens.
DIVIDED = {"distribution_strategy": "mirrored", "gradient_accumulation_steps": 2}
# A window has one sentence to three, and so one masked token or several.
DOCUMENTS = [windows.document(str(n), *range(n, n + 1 + n % 3)) for n in range(12)]


def make_files(folder):
    """Flags of a run on records of `DOCUMENTS`."""
    vocab, text = windows.write_vocab(folder), folder / "text.jsonl"
    text.write_text("\n".join(map(json.dumps, DOCUMENTS)), encoding="utf-8")
    runs.make_records(folder, text, vocab, min_sentences=1, pack_documents=False)
    config = folder / "etc_config.json"
    config.write_text(json.dumps(windows.etc_config(num_hidden_layers=1).to_dict()))
    return {
        "model_config_file": config,
        "vocab_file": vocab,
        "train_data": folder / "text-*.tfrecord",
        "long_seq_length": windows.LONG,
        "global_seq_length": windows.GLOBAL,
        "cpc_weight": 0.0,
        "mlm_share": 0.4,
        "train_batch_size": 4,
        "num_train_epochs": 2,
        "learning_rate": 0.01,
        "optimizer": "adamw",
        "steps_per_summary": 2,
    }


def main(folder, *compiled):
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    made, found = make_files(folder), {}
    divided = {**DIVIDED, "jit_compile": compiled == ("compiled",)}
    for name, options in {"one": {}, "divided": divided}.items():
        output_dir = folder / name
        runs.run_here(**made, output_dir=output_dir, **options)
        reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(output_dir)))
        names = [x for x in reader.get_variable_to_shape_map() if x.startswith("model/")]
        found[name] = {
            "loss": [x["loss"] for x in runs.lines_of(output_dir / "train_metrics.jsonl")],
            "weights": {x: reader.get_tensor(x).tolist() for x in names if "SLOT" not in x},
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
