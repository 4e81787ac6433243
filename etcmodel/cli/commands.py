"""The table of `etcmodel`'s commands: the program that each one starts, and its flags.

The data sets are the folders of `etcmodel.tasks`; a new folder gets every command whose program it
contains. TensorFlow is not needed.
"""

import dataclasses
import functools
import importlib.util
import pkgutil

from etcmodel.models.downloads import RELEASED_CHECKPOINTS


@dataclasses.dataclass(frozen=True)
class Program:
    """A program, and the flags that a command passes to it.

    Attributes:
        module: str. The module's name below `etcmodel`, such as "tools.serve"; or below the root of
            a checkout, such as "benchmarks.serving".
        flags: tuple of str, such as "--run_mode=train".
    """

    module: str
    flags: tuple[str, ...] = ()

    @property
    def is_of_checkout(self) -> bool:
        """Whether it is part of a checkout, not of the installed package."""
        return self.module.startswith("benchmarks.")

    @property
    def full_name(self) -> str:
        """The module's name for `python -m`."""
        return self.module if self.is_of_checkout else f"etcmodel.{self.module}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """A command: a single program, or one for each name that may follow it.

    Attributes:
        summary: str. What it does, in one sentence.
        of_data_sets: str. The program to run from a data set's folder, where the folder has it; ''
            for none.
        of_pretraining: bool. Whether the command also applies to the programs that train without a
            data set.
        own: dict from a name that may follow to a command line (a module as `Program` has it, and
            flags). The key '' is the program that starts when no name follows.
        flags: str. Flags passed to all of its programs.
        has_words: bool. Whether words without dashes are its only program's, such as its data.
    """

    summary: str
    of_data_sets: str = ""
    of_pretraining: bool = False
    own: dict[str, str] = dataclasses.field(default_factory=dict)
    flags: str = ""
    has_words: bool = False

    def programs(self) -> dict[str, Program]:
        """The `Program` for each name that may follow, and for '' if a name is optional."""
        lines = dict(self.own)
        if self.of_data_sets:
            lines |= data_sets(self.of_data_sets)
        if self.of_pretraining:
            lines |= pretrainings()
        words = {name: f"{line} {self.flags}".split() for name, line in lines.items()}
        return {name: Program(module, tuple(flags)) for name, (module, *flags) in words.items()}

    def names(self) -> list[str]:
        """The names that may follow the command, sorted."""
        return sorted(filter(None, self.programs()))


def _of_mode(run_mode: str, summary: str, of_pretraining: bool = False) -> Command:
    return Command(
        summary=summary,
        of_data_sets="run_finetuning",
        of_pretraining=of_pretraining,
        flags=f"--run_mode={run_mode}",
    )


# The data sets whose models start from a pre-trained one.
_FITTED = (
    *("classification", "coreference", "hotpotqa", "nq", "openkp", "squad", "summarization"),
    *("token_classification", "triviaqa", "wikihop"),
)
_PRETRAINING = {"pretraining": "pretrain.run_pretraining"}  # For modes that `char_lm` lacks.
COMMANDS = {
    "download": Command(
        summary="Downloads a checkpoint that the authors released.",
        own={name: f"tools.download --name={name}" for name in RELEASED_CHECKPOINTS},
    ),
    "prepare": Command(
        summary="Cleans, shrinks or changes raw files before preprocessing.",
        own={
            "hotpotqa": "tools.adversarial_distractors",
            "nq": "tasks.nq.make_gold_cache",
            "openkp": "tasks.openkp.input_validate_and_dedup",
        },
    ),
    "preprocess": Command(
        summary="Converts raw files to TFRecords.",
        of_data_sets="preprocess",
        own={"pretraining": "pretrain.preprocess"},
    ),
    "fit": Command(
        summary="Goes from raw data to a trained model and a report page.",
        own={name: f"tools.fit --data_set={name}" for name in _FITTED},
    ),
    "train": _of_mode("train", "Trains a model and evaluates its checkpoints.", True),
    "evaluate": _of_mode("evaluate", "Evaluates the best checkpoint of a run.", True),
    "recipe": Command(
        summary="Lists and runs the recipes of published results.",
        own={x: f"tools.recipe --action={x}" for x in ("list", "run", "show")},
    ),
    "sweep": Command(
        summary="Trains with many combinations of options and reports the best.",
        own={"": "tools.sweep"},
    ),
    "continuous_eval": dataclasses.replace(
        _of_mode("continuous_eval", "Evaluates each checkpoint as it is written."), own=_PRETRAINING
    ),
    "save_pretrained": Command(
        summary="Saves a trained model as a folder for `from_pretrained` and --init_checkpoint.",
        own={
            **_PRETRAINING,
            "classification": "tasks.classification.run_finetuning",
            "summarization": "tasks.summarization.run_finetuning",
            "token_classification": "tasks.token_classification.run_finetuning",
        },
        flags="--run_mode=save_pretrained",
    ),
    "predict_records": _of_mode("predict_records", "Writes predictions for TFRecords."),
    "export": _of_mode("export", "Exports the best checkpoint as a SavedModel."),
    "predict": _of_mode("predict", "Writes predictions for a raw file, with an exported model."),
    "embed": Command(
        summary="Computes a vector of each text of a file.",
        own={"": "tools.embed"},
        has_words=True,
    ),
    "serve": Command(
        summary="Serves an exported model over HTTP, with a page to try it on.",
        own={"": "tools.serve"},
    ),
    "convert": Command(
        summary="Converts a checkpoint of ETC, BERT or RoBERTa.",
        own={"": "tools.convert_checkpoint"},
    ),
    "export_onnx": Command(
        summary="Writes a model's folder as an ONNX file, for runtimes without TensorFlow.",
        own={"": "tools.export_onnx"},
    ),
    "export_stablehlo": Command(
        summary="Writes a model's folder as StableHLO, which JAX runs without TensorFlow.",
        own={"": "tools.export_stablehlo"},
    ),
    "draw": Command(
        summary="Draws which tokens may attend to which.",
        own={"": "tools.draw_attention"},
    ),
    "inspect": Command(
        summary="Writes an HTML page that shows a model's attention.",
        own={"": "tools.inspect_attention"},
    ),
    "report": Command(
        summary="Writes an HTML report on a run: its scores and its predictions.",
        own={"": "tools.report"},
    ),
    "estimate": Command(
        summary="Estimates the cost of an ETC: operations, memory, the longest input that fits.",
        own={"": "tools.estimate"},
    ),
    "benchmark": Command(
        summary="Measures speed and memory on this machine.",
        own={
            "": "tools.benchmark",
            "export_weights": "benchmarks.export_weights",
            "ingredients": "benchmarks.ingredients",
            "input_rate": "benchmarks.input_rate",
            "peers": "benchmarks.peers",
            "preprocessing": "tools.benchmark_preprocessing",
            "preprocessing_dask": "benchmarks.preprocessing_dask",
            "preprocessing_memory": "benchmarks.preprocessing_memory",
            "processor": "benchmarks.processor",
            "products": "benchmarks.products",
            "profile": "benchmarks.profile",
            "real_pages": "benchmarks.real_pages",
            "real_questions": "benchmarks.real_questions",
            "real_tokens": "benchmarks.real_tokens",
            "serving": "benchmarks.serving",
            "serving_load": "benchmarks.serving_load",
            "serving_text": "benchmarks.serving_text",
            "start_up": "benchmarks.start_up",
            "tiling": "tools.benchmarks.tiling",
            "ways": "tools.benchmarks.ways",
        },
    ),
    "demo": Command(
        summary="Runs the whole pipeline on generated data, without a download.",
        own={
            "": "tools.run_demo",
            "ablations": "tools.ablations",
            "data": "tools.make_demo_data",
            "pretraining": "tools.run_pretrain_demo",
            "served": "tools.served_demo",
        },
    ),
    "docs": Command(
        summary="Serves the documentation site from a checkout.",
        own={"": "tools.docs"},
    ),
    "doctor": Command(
        summary="Reports versions, devices and missing packages, and runs a self-test.",
        own={"": "tools.doctor"},
    ),
    "completion": Command(
        summary="Prints a script for tab completion of commands and flags in a shell.",
        own={shell: f"tools.completion --shell={shell}" for shell in ("bash", "fish", "zsh")},
    ),
}


# The commands by purpose, in the order of `COMMANDS`.
AIMS = {
    "Prepare": ("download", "prepare", "preprocess"),
    "Train and evaluate": (
        "fit",
        "train",
        "evaluate",
        "recipe",
        "sweep",
        "continuous_eval",
        "save_pretrained",
    ),
    "Use a trained model": (
        "predict_records",
        "export",
        "predict",
        "embed",
        "serve",
        "convert",
        "export_onnx",
        "export_stablehlo",
    ),
    "Look inside a model": ("draw", "inspect", "report"),
    "Estimate and measure cost": ("estimate", "benchmark"),
    "Try, read and check": ("demo", "docs", "doctor", "completion"),
}


def data_sets(program: str) -> dict[str, str]:
    """dict from each data set whose folder contains this program to the program's module."""
    return {
        name: f"tasks.{name}.{program}"
        for name in _modules("tasks")
        if program in _modules(f"tasks.{name}")
    }


def pretrainings() -> dict[str, str]:
    """dict from each training without a data set, such as "pretraining", to its module."""
    return {
        name.removeprefix("run_"): f"pretrain.{name}"
        for name in _modules("pretrain")
        if name.startswith("run_")
    }


@functools.cache
def _modules(package: str) -> list[str]:
    """The names of the modules and packages in a package below `etcmodel`."""
    spec = importlib.util.find_spec(f"etcmodel.{package}")
    folders = spec.submodule_search_locations if spec else None
    return [module.name for module in pkgutil.iter_modules(folders or [])]
