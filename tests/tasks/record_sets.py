"""Raw files, and how each task's `preprocess` is told of them."""

import importlib
import json
import pathlib

from etcmodel.preprocessing import program

_PATTERNS = {
    "openkp": ("openkp_train.tfrecord*", "openkp_dev.tfrecord*"),
    "wikihop": ("train/tf_examples*", "dev/tf_examples*"),
}


def read_json(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def read_lines(path):
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def read_raws(path):
    """The raw examples of a file: an array, lines, or the object of TriviaQA or SQuAD."""
    if pathlib.Path(path).suffix == ".jsonl":
        return read_lines(path)
    raws = read_json(path)
    return raws[next(x for x in raws if x.lower() == "data")] if isinstance(raws, dict) else raws


def write_raws(path, raws):
    """Such a file; a str among the lines stands there as it is."""
    lines = [raw if isinstance(raw, str) else json.dumps(raw) for raw in raws]
    if path.suffix == ".jsonl":
        text = "".join(f"{line}\n" for line in lines)
    else:
        text = f"[{', '.join(lines)}]"
    path.write_text(text, encoding="utf-8")
    return path


def options(task, folder, paths):
    """The options of each call: list of dict.

    Args:
        task: str.
        folder: `pathlib.Path` of the records; TriviaQA's evidence is beside them.
        paths: dict of the raw files "train" and "dev".
    """
    if task == "wikihop":
        dev = {"dev_input_pattern": paths["dev"], "output_dir": str(folder)}
        return [{"input_pattern": paths["train"], **dev}]
    own = {"evidence_dir": str(folder / "evidence")} if task == "triviaqa" else {}
    return [
        {
            "input_pattern": paths[name],
            "is_training": name == "train",
            **({"output_dir": str(folder)} if task == "openkp" else {}),
            **({} if task == "openkp" else {"output_prefix": str(folder / name)}),
            **own,
        }
        for name in ("train", "dev")
    ]


def patterns(task, folder):
    """Those of the records to train and to evaluate on."""
    names = _PATTERNS.get(task, ("train-*.tfrecord", "dev-*.tfrecord"))
    return tuple(folder / name for name in names)


def vocabulary(paths):
    """The option that names `paths["vocab"]`."""
    name = "spm_model_file" if paths["vocab"].endswith(".model") else "vocab_file"
    return {name: paths["vocab"]}


def make(task, folder, paths, *, dev=(), **given):
    """Makes both sets in this process; those to evaluate on have the training's labels.

    Args:
        task, folder, paths: as in `options`, and `paths["vocab"]`.
        dev: dict. Further options of the second set.
        **given: options of both, in place of those for one strict shard.
    """
    module = importlib.import_module(f"etcmodel.tasks.{task}.preprocess")
    known = module.PreprocessOptions.__dataclass_fields__
    given = {**vocabulary(paths), "num_shards": 1, "strict": True, **given}
    of_dev = {"labels_file": str(folder / "train.config.json"), **dict(dev)}
    for number, of_set in enumerate(options(task, folder, paths)):
        chosen = {**given, **of_set, **(of_dev if number else {})}
        chosen = {name: value for name, value in chosen.items() if name in known}
        list(program.run(module.PreprocessOptions(**chosen), module.load_parts))
