"""Lists, shows and runs recipes: the commands for each published result, in order.

    python -m etcmodel.tools.recipe --action=list
    python -m etcmodel.tools.recipe --action=run hotpotqa_base --data=data
    python -m etcmodel.tools.recipe --action=run hotpotqa_base --tiny

A recipe is an entry of a YAML file: commands of `etcmodel` with their options, what they start
from, and the published scores. `run` checks all options, prints the plan with its cost, and runs
the steps, none of which downloads anything. The same command resumes where it was stopped.
--output_dir will contain

    recipe.json   the steps, and which of them are done
    records/      what `preprocess` wrote
    run/          the training
    result.json   the measured scores beside the published ones

--tiny runs every step on generated data with a small model. Flags after `--` are passed to the
training.
"""

import copy
import dataclasses
import difflib
import functools
import glob
import gzip
import importlib
import json
import os
import pathlib
import re
import statistics

from etcmodel import atomic_files, bounded_json, bounded_yaml, hub
from etcmodel.cli.commands import COMMANDS
from etcmodel.durations import format_duration
from etcmodel.finetuning.command_line import ProgramOptions
from etcmodel.finetuning.config import FinetuningConfig
from etcmodel.models import downloads, presets
from etcmodel.models.longformer_char_lm import config as char_lm
from etcmodel.options import Options, config_files, fields, option, option_fields, run_program
from etcmodel.shown_values import listed, shown
from etcmodel.tools import estimate, fit, make_demo_data
from etcmodel.training.config import TrainingConfig

__all__ = ["FOLDER", "Recipe", "RecipeOptions", "Step", "plan", "read_recipes", "run"]

FOLDER = pathlib.Path(__file__).parent / "recipes"
_TINY = "tiny.yaml"  # How --tiny changes the recipes; no recipes of its own.
KEPT, RESULT = "recipe.json", "result.json"
# The commands of recipes, in the order in which the steps of a stage run.
_ORDER = (
    *("demo", "prepare", "preprocess", "train", "export", "predict", "evaluate"),
    "save_pretrained",
)
_TRAINING, _EVALUATION = "training", "evaluation"  # Steps that a recipe must have.
# Options of a training that may differ when it is resumed: they change no result.
_OF_DEVICES = {
    field.name
    for field in option_fields(TrainingConfig)
    if field.metadata["role"] == "run" and field.name != "output_dir"
}
_TEXT_OF = {"text": "train", "dev_text": "dev"}  # Parts of generated data that are plain text.
_PARTS = ("train", "dev", *_TEXT_OF, "vocab", "")
_GIGA = 1e9


# Recipes.


@dataclasses.dataclass(frozen=True)
class Step:
    """A command of a recipe.

    Attributes:
        name: str. Its key in the recipe.
        command: str. Such as "train nq".
        options: dict of option to value, in which `{data}`, `{output}`, `{model}` and `{config}`
            stand for what a run has in their place.
        stage: int. Steps of a higher one run later.
    """

    name: str
    command: str
    options: dict
    stage: int = 1

    def filled(self, places):
        """The step with the values of `places` (dict of str) in place of their names."""

        def fill(value):
            if not isinstance(value, str):
                return tuple(value) if isinstance(value, list) else value
            return re.sub(r"\{(\w+)\}", lambda x: places.get(x[1], x[0]), value)

        return dataclasses.replace(
            self, options={name: fill(value) for name, value in self.options.items()}
        )

    def uses(self, place):
        """Whether an option has `{place}`: bool."""
        return any(f"{{{place}}}" in str(value) for value in self.options.values())

    @property
    def line(self):
        """The command as typed in a shell: str."""
        return fit.line(*self.command.split(), **self.options)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """The commands that lead to a published result.

    Attributes:
        name: str.
        title: str. What is trained on what.
        source: str. The paper and the table or section that has the scores.
        steps: tuple of `Step`.
        published: dict of a metric, as the evaluation names it, to the published score. Empty if
            the paper has none.
        notes: dict of an option, or another topic, to what the paper leaves open or does otherwise.
        generated: str. The data set of `make_demo_data` that stands for the real one in --tiny.
        raw_files: dict of a file below --data, which may be a pattern, to what stands for it in
            --tiny: "train" or "dev" of the generated data, "text" or "dev_text", which are these
            as plain text, "vocab", or "" for nothing.
        where: str. Where to get them.
        preset: str. The model by its name in `models.presets`, or of the character models; '' if
            `model` has its config.
        model: dict. Entries of the model's config, with `model_type`.
        starts_from: str. What the weights come from: a released checkpoint, another recipe, or a
            folder below --data. '' for random weights.
        where_model: str. How to get that folder.
        tiny: dict. Entries of the small model's config in --tiny that `tiny.yaml` does not give.
        train_examples: int. Examples of an epoch, for the plan; 0 if not known beforehand.
        seeds: int. Number of trainings whose mean score is the result.
    """

    name: str
    title: str
    source: str
    steps: tuple
    generated: str
    published: dict = dataclasses.field(default_factory=dict)
    notes: dict = dataclasses.field(default_factory=dict)
    raw_files: dict = dataclasses.field(default_factory=dict)
    where: str = ""
    preset: str = ""
    model: dict = dataclasses.field(default_factory=dict)
    starts_from: str = ""
    where_model: str = ""
    tiny: dict = dataclasses.field(default_factory=dict)
    train_examples: int = 0
    seeds: int = 1

    def step(self, name):
        """The `Step` of a name; None if there is none."""
        return next((step for step in self.steps if step.name == name), None)

    def config(self, **changes):
        """The `EncoderConfig`, with entries changed."""
        if self.preset in char_lm.PRESETS:
            return dataclasses.replace(char_lm.PRESETS[self.preset], **changes)
        if self.preset:
            return presets.preset(self.preset, **changes)
        from etcmodel.models import encoders  # Imports TensorFlow, which takes seconds.

        entries = {**self.model, **changes}
        return encoders.encoder_type(entries["model_type"]).config_class(
            **{name: value for name, value in entries.items() if name != "model_type"}
        )


_FIELDS = {field.name: field.type for field in dataclasses.fields(Recipe) if field.name != "name"}


def read_recipes(path=""):
    """Reads and checks all recipes.

    Args:
        path: str. A YAML file with further recipes, or others of the same names.
    Returns:
        dict of name to `Recipe`.
    Raises:
        ValueError: in one line that names the file, the line and the recipe, for a key or an option
            that does not exist, a value that is none of it, or a base that is no recipe.

    >>> from etcmodel.tools import recipe
    >>> recipe.read_recipes()["hotpotqa_base"].published
    {'f1': 0.751, 'sp_f1': 0.869}
    """
    entries, places = _of_package()
    if path:
        own, own_places = _read(path)
        entries, places = {**entries, **own}, {**places, **own_places}
    return {name: _recipe(name, entries, places) for name in entries}


@functools.cache
def _of_package():
    """What `_read` returns, of all files of the package: they stay as they are."""
    entries, places = {}, {}
    for file in sorted(FOLDER.glob("*.yaml")):
        if file.name != _TINY:
            own, own_places = _read(str(file))
            entries, places = entries | own, places | own_places
    return entries, places


def _read(file):
    """Reads a file of recipes: (entries by name, places by the keys down to them, as tuples).

    A place is such as "nq.yaml, line 3".
    """
    lines = {}
    found = config_files.read_mapping(file, "--recipe_file", lines)
    places = {keys: f"{file}, line {line}" for keys, line in lines.items()}
    return {str(name): entry for name, entry in found.items()}, places


def _recipe(name, entries, lines):
    bases = [name]
    while base := _mapping(entries[bases[-1]], lines[bases[-1],]).get("like"):
        if base not in entries or base in bases:
            raise ValueError(f"{lines[bases[-1], 'like']}: `like` must name another recipe.")
        bases.append(base)

    def place(*keys):
        return next((lines[(x, *keys)] for x in bases if (x, *keys) in lines), lines[name,])

    merged = {}
    for base in reversed(bases):
        merged = _merged(merged, entries[base])
    merged.pop("like", None)
    for key, value in merged.items():
        if key not in _FIELDS:
            raise ValueError(
                f"{place(key)}: {name} has no `{key}`. It may have {listed([*_FIELDS])}."
            )
        allowed = dict if key == "steps" else _FIELDS[key]
        if not isinstance(value, allowed):
            given = shown(value)
            raise ValueError(
                f"{place(key)}: `{key}` must be a {allowed.__name__}. Received: {given}"
            )
    _check_values(merged, place)
    steps = (
        _step(key, entry, lambda *keys, key=key: place("steps", key, *keys))
        for key, entry in merged.get("steps", {}).items()
    )
    steps = sorted(
        steps, key=lambda step: (step.stage, _ORDER.index(step.command.partition(" ")[0]))
    )
    missing = {"title", "source", "generated", "steps"} - set(merged)
    missing |= {_TRAINING, _EVALUATION} - {step.name for step in steps}
    if missing:
        raise ValueError(f"{place()}: {name} has no `{min(missing)}`.")
    return Recipe(**{**merged, "name": name, "steps": tuple(steps)})


def _check_values(found, place):
    """Raises ValueError if a value of a recipe is none of those that there are."""
    known = {*presets.PRESETS, *presets.CHECKPOINTS, *char_lm.PRESETS, ""}
    for key, allowed in (("preset", known), ("generated", make_demo_data.GENERATORS)):
        if found.get(key, "") not in {*allowed, ""}:
            raise ValueError(f"{place(key)}: there is no {key} {shown(found[key])}.")
    for name, score in found.get("published", {}).items():
        if isinstance(score, bool) or not isinstance(score, int | float):
            at = place("published", name)
            raise ValueError(f"{at}: a published score is a number. Received: {shown(score)}")
    for name, part in found.get("raw_files", {}).items():
        if part not in _PARTS:
            at = place("raw_files", name)
            parts = ", ".join(filter(None, _PARTS))
            raise ValueError(f"{at}: a raw file is one of {parts} or ''. Received: {shown(part)}")


def _mapping(value, place):
    if not isinstance(value, dict):
        raise ValueError(f"{place}: must be a mapping. Received: {shown(value)}")
    return value


def _merged(base, changes):
    """A mapping with changes at any depth; None removes."""
    merged = copy.deepcopy(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _merged(merged[key], value)
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _step(name, entry, place):
    options = dict(_mapping(entry, place()))
    command, stage = str(options.pop("run", "")), options.pop("stage", 1)
    if type(stage) is not int or stage < 1:
        raise ValueError(
            f"{place('stage')}: a stage is an integer from 1. Received: {shown(stage)}"
        )
    sections = _sections(command, place("run"))
    for key, value in options.items():
        field = config_files.find_option(str(key), sections, {}, place(key))
        options[key] = config_files.checked(field, value, str(key), place(key))
    return Step(name, command, options, stage)


def _sections(command, place):
    """The classes of a command's options, by section; imports no TensorFlow."""
    verb, *names = command.split() or [""]
    programs = COMMANDS[verb].programs() if verb in COMMANDS else {}
    program = programs.get(" ".join(names))
    if verb not in _ORDER or program is None:
        known = ", ".join(_ORDER)
        raise ValueError(
            f"{place}: `run` must be one of {known}, with what follows it in `etcmodel`. "
            f"Received: {shown(command)}"
        )
    module = importlib.import_module(program.full_name)
    if program.module.startswith("pretrain.run_"):
        folder = {"pretraining": "pretrain", "char_lm": "pretrain.char_lm"}[names[0]]
        config = importlib.import_module(f"etcmodel.{folder}.config")
        task = config.PretrainConfig if names[0] == "pretraining" else config.CharLmOptions
        return {"program": config.ProgramOptions, "training": TrainingConfig, "task": task}
    known = [x for x in vars(module).values() if isinstance(x, type) and issubclass(x, Options)]
    task = next((x for x in known if issubclass(x, FinetuningConfig)), None)
    if task is not None:
        return {"program": ProgramOptions, "training": TrainingConfig, "task": task}
    return {"options": next(x for x in known if x.__module__ == module.__name__)}


# What a run makes of a recipe.


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecipeOptions(estimate.ScalingOptions):
    """What to do with which recipe; and the devices that the plan is for."""

    help_texts = {
        "devices": "Numbers of devices that train together, such as 1,8: the plan has the time of "
        "the training for each. None: for one device."
    }

    action: str = option(
        "run",
        "What to do: list the recipes, show the plan of one, or run it.",
        choices=("list", "show", "run"),
    )
    recipe_file: str = option(
        "",
        "YAML file with recipes of your own, which may be `like` the package's. None: the "
        "package's alone.",
        is_file=True,
    )
    data: str = option("data", "Folder of the raw files, and of the models to start from.")
    init_checkpoint: str = option(
        "", "Folder of the model to start from. None: the one that the recipe names, in --data."
    )
    output_dir: str = option("", "Directory for all output files. None: runs/NAME.")
    tiny: bool = option(
        False, "Run on generated data with a small model: all steps in about a minute."
    )


def plan(recipe, options, others=()):
    """The steps of a run, with its folders and the flags for the training: list of `Step`.

    Args:
        recipe: `Recipe`.
        options: `RecipeOptions`.
        others: sequence of str. Flags for the training.
    Raises:
        ValueError: naming the flag, if the training has no such, or this is no value of it.
    """
    folder = _output_dir(recipe, options)
    places = {
        "data": os.path.join(folder, "data") if options.tiny else options.data,
        "output": folder,
        "model": _model_folder(recipe, options),
        "config": os.path.join(folder, "config.json"),
    }
    steps = []
    for step in recipe.steps:
        if step.name == _TRAINING:
            step = dataclasses.replace(step, options={**step.options, **_parsed(step, others)})
        if step.uses("seed"):
            steps += [_of_seed(step, seed).filled(places) for seed in range(recipe.seeds)]
        else:
            steps.append(step.filled(places))
    return steps


def _of_seed(step, seed):
    """The step of one of several trainings."""
    found = step.filled({"seed": str(seed)})
    own = {"random_seed": seed} if step.name == _TRAINING else {}
    return dataclasses.replace(found, name=f"{step.name}_{seed}", options={**found.options, **own})


def _output_dir(recipe, options):
    return options.output_dir or os.path.join("runs", recipe.name)


def _model_folder(recipe, options):
    folder = _output_dir(recipe, options)
    if options.tiny:
        return os.path.join(folder, "model")
    if options.init_checkpoint:
        return options.init_checkpoint
    own = os.path.join(os.path.dirname(folder), recipe.starts_from, "pretrained")
    return own if os.path.isdir(own) else os.path.join(options.data, recipe.starts_from)


def _parsed(step, words):
    """The values of flags for the training: dict."""
    sections, found = _sections(step.command, step.name), {}
    for word in words:
        name, equals, text = word.lstrip("-").partition("=")
        source = f"--{name}" if word.startswith("--") else word
        if not word.startswith("--"):
            raise ValueError(f"{word}: flags of the training follow `--`, as --name=value.")
        if not equals and name.startswith("no"):
            name, text = name.removeprefix("no"), "false"
        field = config_files.find_option(name, sections, {}, source)
        is_text = fields.kind(field)[0] in (str, tuple)
        value = text if is_text else bounded_yaml.loads(text if equals or text else "true", source)
        found[name] = config_files.checked(field, value, name, source)
    return found


def _tiny(recipe):
    """The recipe for generated data and a small model."""
    tiny = config_files.read_mapping(str(FOLDER / _TINY))
    steps, files = [], {file: part for file, part in recipe.raw_files.items() if part}
    for step in recipe.steps:
        words = [step.command, step.options.get("dataset")]
        changes = tiny["steps"].get(" ".join(filter(None, words)), {})
        steps.append(dataclasses.replace(step, options=_merged(step.options, changes)))
    return dataclasses.replace(
        recipe, steps=tuple(steps), raw_files=files, seeds=min(recipe.seeds, 2)
    )


def _make_tiny(recipe, folder):
    """Writes the generated data, and the small model that the recipe starts from.

    The raw files have the names of the real ones.
    """
    import tf_keras  # With TensorFlow.

    from etcmodel import checkpoints
    from etcmodel.models import encoders

    tiny, data = config_files.read_mapping(str(FOLDER / _TINY)), os.path.join(folder, "data")
    settings = {**tiny["data"], **tiny["steps"].get(f"demo data {recipe.generated}", {})}
    made = make_demo_data.make_demo_data(dataset=recipe.generated, output_dir=data, **settings)
    for name, part in {**recipe.raw_files, "vocab.txt": "vocab"}.items():
        path = os.path.join(data, name.replace("*", "00"))
        content = pathlib.Path(made[_TEXT_OF.get(part, part)]).read_bytes()
        if part in _TEXT_OF:
            rows = [json.loads(line) for line in content.splitlines()]
            content = "\n\n".join(row["text"] for row in rows).encode()
        _write(path, gzip.compress(content) if name.endswith(".gz") else content)
    vocab_size = json.loads(pathlib.Path(made["config"]).read_bytes())["vocab_size"]
    sizes = {**tiny["models"][recipe.config().model_type], **recipe.tiny}
    config = recipe.config(**sizes)
    if "vocab_size" not in {**recipe.model, **sizes}:
        config = encoders.replace(config, vocab_size=vocab_size)
    atomic_files.write_text(os.path.join(folder, "config.json"), [config.to_json_string()])
    if recipe.starts_from:
        tf_keras.utils.set_random_seed(0)
        model = encoders.build_encoder(config)
        checkpoints.save_pretrained(model, os.path.join(folder, "model"))
        vocab = pathlib.Path(made["vocab"])
        _write(os.path.join(folder, "model", vocab.name), vocab.read_bytes())


def _write(path, content):
    """Writes bytes; a run that is stopped before `recipe.json` is there writes all of them anew."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pathlib.Path(path).write_bytes(content)


# The plan, as it is printed.


def shown_plan(recipe, steps, options):
    """What `show` and `run` print of a recipe: str."""
    lines = [f"{recipe.name}: {recipe.title} ({recipe.source})"]
    lines.append(f"published   {_scores(recipe.published) or 'no score'}")
    if recipe.starts_from:
        lines.append(f"starts from {_model_folder(recipe, options)}")
    lines += [f"needs       {path}" for path in _raw_files(recipe, options)]
    lines += [f"{number:<2} {step.line}" for number, step in enumerate(steps, 1)]
    lines += [] if options.tiny else _cost(recipe, steps, options)
    lines += [f"note: {name}: {text}" for name, text in recipe.notes.items()]
    return "\n".join(lines)


def _scores(scores):
    return ", ".join(f"{name} {value:g}" for name, value in scores.items())


def _raw_files(recipe, options):
    folder = os.path.join(_output_dir(recipe, options), "data") if options.tiny else options.data
    return [os.path.join(folder, name) for name in recipe.raw_files]


def _cost(recipe, steps, options):
    """Lines on the memory and the time of the training, by `estimate`."""
    from etcmodel.checkpoints import coverage  # Imports TensorFlow.

    from .benchmarks import costs

    config = recipe.config()
    number = coverage.num_parameters(config)
    if config.model_type != "etc":
        size = 16 * number / _GIGA
        return [
            f"cost        {number / 1e6:,.0f}M parameters, {size:.1f} GB with gradients and "
            "moments; time and activations are estimated for ETC alone"
        ]
    training = next(step for step in steps if step.command.startswith("train "))
    given, lengths = training.options, _lengths(recipe)
    batch = given.get("train_batch_size", TrainingConfig.train_batch_size)
    epochs = given.get("num_train_epochs", TrainingConfig.num_train_epochs)
    parts = given.get("gradient_accumulation_steps", 1)
    is_recomputed = given.get("grad_checkpointing_period", config.grad_checkpointing_period)
    phase = "checkpointed" if is_recomputed else "train"
    of_model, num_steps = costs.Costs(number, config), int(recipe.train_examples * epochs / batch)
    num_steps = min(num_steps, given.get("stop_at_step", num_steps))
    lines = []
    for devices in options.devices or (1,):
        own = max(1, -(-batch // devices))
        of_one = dataclasses.replace(options, devices=(devices,))
        (step,) = estimate.steps(of_model, of_one, lengths, own, phase=phase)
        size = of_model.num_bytes(phase, -(-own // parts) * sum(lengths)) / _GIGA
        low, high = (format_duration(x * (num_steps or 1)) for x in (step.least, step.most))
        steps = f"for {num_steps:,} steps" if num_steps else "a step"
        device = f"{devices} device{'s' * (devices > 1)} of {options.peak_tflops:g} TFLOP/s"
        lines.append(f"cost        {device}: {low} to {high} {steps}; {size:,.1f} GB on each")
    return lines


def _lengths(recipe):
    """(long, global) tokens of the training's inputs."""
    records = next(x for x in recipe.steps if x.command.startswith("preprocess "))
    (section,) = _sections(records.command, records.name).values()
    names = ("long_seq_length", "global_seq_length")
    known = {field.name: field.default for field in option_fields(section)} | records.options
    return tuple(known[name] for name in names)


# The run.


def run(recipe, options, others=()):
    """Runs the steps that are not done, and writes and prints the result.

    Args:
        recipe, options, others: as in `plan`.
    Returns:
        dict. The content of `result.json`.
    Raises:
        ValueError: in one line, if something is missing, or the folder has another run.
        SystemExit: as `fit.run`, if a step fails.
    """
    recipe = _tiny(recipe) if options.tiny else recipe
    steps, folder = plan(recipe, options, others), _output_dir(recipe, options)
    print(shown_plan(recipe, steps, options), flush=True)
    if not os.path.exists(os.path.join(folder, KEPT)):
        if options.tiny:
            _make_tiny(recipe, folder)
        _check_there(recipe, options)
        if not options.tiny and any(step.uses("config") for step in recipe.steps):
            path = os.path.join(folder, "config.json")
            atomic_files.write_text(path, [recipe.config().to_json_string()])
    kept = _keep(recipe, steps, options)
    for step in steps:
        if step.name in kept["done"]:
            print(f"\n{step.name} is done: {step.line}")
            continue
        measures = step.command.startswith("evaluate ")
        output = fit.run(*step.command.split(), reads=measures, **step.options)
        kept["done"][step.name] = _metrics(output) if measures else {}
        atomic_files.write_json(os.path.join(folder, KEPT), kept)
    return _tell(recipe, kept, options)


def _check_there(recipe, options):
    """Raises ValueError, saying where to get it, if a file or the model is not there."""
    for path in _raw_files(recipe, options):
        if not glob.glob(path):
            raise ValueError(f"{path}: no such file. Get it from {recipe.where}, or give --data.")
    folder, name = _model_folder(recipe, options), recipe.starts_from
    if name and not folder.startswith(hub.PREFIX) and not glob.glob(f"{folder}*"):
        how = recipe.where_model.replace("FOLDER", folder)
        how = how or f"`etcmodel recipe run {name}` pre-trains it"
        if name in downloads.RELEASED_CHECKPOINTS:
            how = f"`etcmodel download {name} --output_dir={folder}` fetches it"
        raise ValueError(f"{folder}: no such folder. {how}; or give --init_checkpoint.")


def _keep(recipe, steps, options):
    """The content of `recipe.json`; raises ValueError if the folder has another run's."""
    path = os.path.join(_output_dir(recipe, options), KEPT)
    files = [file for raw in _raw_files(recipe, options) for file in sorted(glob.glob(raw))]
    made = {
        "recipe": recipe.name,
        "steps": {step.name: {"run": step.command, **step.options} for step in steps},
        "sizes": {file: os.path.getsize(file) for file in files},
        "done": {},
    }
    if not os.path.exists(path):
        atomic_files.write_json(path, made)
        return made
    advice = "Give that, or another --output_dir."
    kept = {"done": {}, **bounded_json.read_object(path, advice)}
    if kept.get("recipe") != recipe.name:
        raise ValueError(f"{path}: is of {kept.get('recipe')}, not {recipe.name}. {advice}")
    for name, now in json.loads(json.dumps(made["steps"])).items():
        before = kept.get("steps", {}).get(name, {})
        for key in {**now, **before}:
            if now.get(key) != before.get(key) and not (
                key in _OF_DEVICES and name.startswith(_TRAINING)
            ):
                raise ValueError(
                    f"{path}: {name} has --{key}={before.get(key)}, not {now.get(key)}. {advice}"
                )
    for name in {**made["sizes"], **kept.get("sizes", {})}:
        if kept.get("sizes", {}).get(name) != made["sizes"].get(name):
            raise ValueError(f"{name} has changed since {path}. Give another --output_dir.")
    return kept


def _metrics(output):
    """The metrics in the output of an evaluation, its last line of JSON: dict."""
    lines = [line for line in output.splitlines() if line.startswith("{")]
    return bounded_json.load_object(lines[-1].encode(), "the evaluation", "Run it again.")


def _tell(recipe, kept, options):
    found = [x for name, x in kept["done"].items() if name.startswith(_EVALUATION)]
    metrics = {name: statistics.mean(x[name] for x in found) for name in found[0]}
    compared = {
        name: {"published": value, "measured": metrics.get(name)}
        for name, value in recipe.published.items()
    }
    result = {
        "recipe": recipe.name,
        "title": recipe.title,
        "source": recipe.source,
        "tiny": options.tiny,
        "compared": compared,
        "metrics": metrics,
    }
    path = os.path.join(_output_dir(recipe, options), RESULT)
    atomic_files.write_json(path, result)
    scores = ", ".join(
        f"{name} {metrics[name]:.4g} (published {value:g})"
        for name, value in recipe.published.items()
        if name in metrics
    )
    on = ", on generated data" if options.tiny else ""
    print(f"\n{recipe.name}{on}: {scores or 'no published score'}: {path}")
    return result


def _list(recipes):
    width = max(map(len, recipes))
    for recipe in recipes.values():
        scores = _scores(recipe.published) or "no published score"
        print(f"{recipe.name:{width}}  {recipe.title}; {scores} ({recipe.source})")


def main(options, words):
    """Runs the program with its flags and words."""
    others = [word for word in words if word.startswith("-")]
    names = [word for word in words if not word.startswith("-")]
    recipes = read_recipes(options.recipe_file)
    if options.action == "list":
        if words:
            raise ValueError(f"`etcmodel recipe list` takes flags alone. Received: {words[0]!r}")
        _list(recipes)
        return
    if len(names) != 1 or names[0] not in recipes:
        given = " ".join(names) or "none"
        close = difflib.get_close_matches(given, recipes, cutoff=0.5)
        nearest = f" The nearest: {', '.join(close)}." if close else ""
        raise ValueError(
            "Give the name of one recipe; `etcmodel recipe list` has them. Received: "
            f"{given}.{nearest}"
        )
    recipe = recipes[names[0]]
    if options.action == "show":
        recipe = _tiny(recipe) if options.tiny else recipe
        print(shown_plan(recipe, plan(recipe, options, others), options))
        return
    run(recipe, options, others)


if __name__ == "__main__":
    run_program(RecipeOptions, main, section="recipe", has_others_flags=True, has_words=True)
