"""The commands of the page, and small models and texts for them."""

import json
import re
import shlex
import shutil

import numpy as np
from absl import flags

import etcmodel
from etcmodel import checkpoints
from etcmodel.checkpoints import hugging_face, writing
from etcmodel.models.gmat import GmatForMaskedLM
from etcmodel.models.longformer import LongformerConfig, LongformerForMaskedLM
from etcmodel.options import ProgramFlags
from etcmodel.preprocessing import program as preprocessing_program
from etcmodel.pretrain import preprocess
from etcmodel.pretrain import program as pretrain_program
from tests import page
from tests.checkpoints import berts
from tests.models import etcs
from tests.pretrain import windows
from tests.pretrain.runs import lines_of
from tests.reference import cases

PAGE = (page.DOCS / "pretraining.md").read_text(encoding="utf-8")
SECTION = re.search(r"^## Systems without sentences\n(.*?)^## ", PAGE, re.M | re.S)[1]
LENGTH = 40
# What makes the page's commands small.
SMALL = {
    "preprocess": {"long_seq_length": LENGTH, "num_shards": 2},
    "run_pretraining": {
        "train_batch_size": 4,
        "eval_batch_size": 4,
        "num_train_epochs": 2,
        "learning_rate": 0.01,
        "save_checkpoints_steps": 4,
    },
}


def commands():
    """The commands of the section: list of (program, list of arguments)."""
    found = []
    for block in re.findall(r"```sh\n(.*?)```", SECTION, re.S):
        for line in block.replace("\\\n", " ").splitlines():
            if match := re.match(r"python -m etcmodel\.pretrain\.(\w+) (.*)", line):
                found.append((match[1], shlex.split(match[2])))
    return found


def run(folder, program, arguments, **options):
    """Runs a command in this process, from the folder."""
    # Later modes have the options of the run.
    is_later = any(x.startswith("--run_mode=") for x in arguments)
    given = {**({} if is_later else SMALL[program]), **options}
    arguments = [*arguments, *(f"--{name}={value}" for name, value in given.items())]
    with page.working_in(folder):
        if program == "preprocess":
            _preprocess(arguments)
        else:
            made = pretrain_program.Program(flags.FlagValues())
            made.define_flags()
            made.flag_values([program, *arguments])
            made.main([])


def go_on(folder, **options):
    """Pre-trains the model in `first` on the texts: that model, and what it has become."""
    for split, pattern in (("train", "books/*.txt"), ("heldout", "heldout.txt")):
        arguments = ["--windows=text", f"--input_pattern={pattern}", f"--output_prefix={split}"]
        run(folder, "preprocess", [*arguments, "--init_checkpoint=first"])
    arguments = ["--output_dir=run", "--init_checkpoint=first", "--train_data=train-*.tfrecord"]
    run(folder, "run_pretraining", [*arguments, "--eval_data=heldout-*.tfrecord"], **options)
    run(folder, "run_pretraining", ["--run_mode=save_pretrained", "--output_dir=run"])
    losses = [line["mlm_loss"] for line in lines_of(folder / "run" / "eval_metrics.jsonl")]
    assert losses[-1] < losses[0] - 0.1
    first, last = (etcmodel.from_pretrained(folder / x) for x in ("first", "run/pretrained"))
    assert not np.array_equal(last.encoder.weights[0], first.encoder.weights[0])
    return first, last


def _preprocess(arguments):
    values = flags.FlagValues()
    program_flags = ProgramFlags({"preprocess": preprocess.PreprocessOptions}, values)
    program_flags.define()
    values(["preprocess", *arguments])
    given = (preprocess.PreprocessOptions, program_flags, values)
    options = preprocessing_program.read_options(*given)
    job = preprocessing_program.make_job(options, *preprocess.load_parts())
    preprocess.run_job(job)


def write_texts(folder):
    """Text files for the page's patterns."""
    (folder / "books").mkdir()
    for name, numbers in (("one", range(60)), ("two", range(30, 70)), ("heldout", range(20))):
        documents = [windows.document(str(n), *range(n, n + 5))["text"] for n in numbers]
        directory = folder if name == "heldout" else folder / "books"
        (directory / f"{name}.txt").write_text("\n\n".join(documents), encoding="utf-8")


def write_roberta(folder):
    """Hugging Face's folder of a small RoBERTa with a byte-level vocabulary and random weights."""
    config = LongformerConfig(
        vocab_size=2000,
        **etcs.sizes(num_hidden_layers=2, intermediate_size=16),
        attention_window=8,
        max_position_embeddings=18,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    model = LongformerForMaskedLM(config)
    rng = np.random.default_rng(0)
    for weight in model.weights:
        is_scale = weight.name.endswith("gamma:0")
        weight.assign(is_scale + rng.normal(scale=0.1, size=weight.shape))
    values = {
        name.replace("longformer.", "roberta."): value
        for name, value in hugging_face.values(model).items()
        if "_global." not in name
    }
    folder.mkdir()
    writing.write_safetensors(values, str(folder / "model.safetensors"), made_by="pt")
    of_longformer = ("attention_window", "onnx_export")
    entries = {name: x for name, x in config.to_dict().items() if name not in of_longformer}
    entries["model_type"] = "roberta"
    (folder / "config.json").write_text(json.dumps(entries))
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(cases.topic_folder("longformer") / "tokenizer" / name, folder / name)


def write_bert(folder):
    """Likewise a small BERT with the vocabulary of `windows`."""
    berts.write_folder(folder, windows.VOCAB)
    weights = berts.hugging_face_weights()
    shape = (len(windows.VOCAB), berts.HIDDEN)
    table = np.random.default_rng(1).normal(scale=0.1, size=shape).astype(np.float32)
    weights["bert.embeddings.word_embeddings.weight"] = table
    weights |= berts.masked_lm_weights(shape[0])
    berts.write_safetensors(folder, weights)
    entries = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**entries, "vocab_size": len(windows.VOCAB)}))


def lift(folder):
    """The page's folders of models, smaller ones than it has."""
    write_roberta(folder / "roberta-base")
    write_bert(folder / "bert-base-uncased")
    made = checkpoints.lift_roberta(folder / "roberta-base", max_length=LENGTH, attention_window=8)
    etcmodel.save_pretrained(made, folder / "longformer")
    made = checkpoints.lift_to_gmat(
        folder / "bert-base-uncased", as_class=GmatForMaskedLM, chunk_size=10, num_memory_tokens=2
    )
    etcmodel.save_pretrained(made, folder / "gmat")
