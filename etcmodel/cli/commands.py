"""The table of `etcmodel`'s commands: which program each one starts, and with which flags.

The data sets are the folders of `etcmodel.tasks`: a new one has all commands whose program it has.
No TensorFlow is needed.
"""

import dataclasses
import functools
import importlib.util
import pkgutil

__all__ = ["AIMS", "COMMANDS", "Command", "Program", "data_sets", "pretrainings"]


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of the package, and the flags that a command gives it.

    Attributes:
        module: str. Below `etcmodel`, such as "tools.serve".
        flags: tuple of str, such as "--run_mode=train".
    """

    module: str
    flags: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """A command: one program, or one for each name that may follow.

    Attributes:
        summary: str. What it does, in one sentence.
        of_data_sets: str. The program in each data set's folder, if it has one; '' for none.
        of_pretraining: bool. Whether the programs that train without a data set have it, too.
        own: dict of a name that may follow to a command line: a module below `etcmodel` and flags.
            '' is what is started where none follows.
        flags: str. What all of its programs are given.
    """

    summary: str
    of_data_sets: str = ""
    of_pretraining: bool = False
    own: dict[str, str] = dataclasses.field(default_factory=dict)
    flags: str = ""

    def programs(self) -> dict[str, Program]:
        """The `Program` of each name that may follow; of '' where none has to."""
        lines = dict(self.own)
        if self.of_data_sets:
            lines |= data_sets(self.of_data_sets)
        if self.of_pretraining:
            lines |= pretrainings()
        words = {name: f"{line} {self.flags}".split() for name, line in lines.items()}
        return {name: Program(module, tuple(flags)) for name, (module, *flags) in words.items()}

    def names(self) -> list[str]:
        """What may follow the command, sorted."""
        return sorted(filter(None, self.programs()))


def _of_mode(run_mode: str, summary: str, of_pretraining: bool = False) -> Command:
    return Command(
        summary=summary,
        of_data_sets="run_finetuning",
        of_pretraining=of_pretraining,
        flags=f"--run_mode={run_mode}",
    )


# Those whose models begin with one that was pre-trained.
_FITTED = ("classification", "hotpotqa", "nq", "openkp", "summarization", "triviaqa", "wikihop")
_PRETRAINING = {"pretraining": "pretrain.run_pretraining"}  # Of modes that `char_lm` lacks.
COMMANDS = {
    "prepare": Command(
        summary="Cleans or shrinks raw files before all else.",
        own={
            "nq": "tasks.nq.make_gold_cache",
            "openkp": "tasks.openkp.input_validate_and_dedup",
        },
    ),
    "preprocess": Command(
        summary="Makes TFRecords of raw files.",
        of_data_sets="preprocess",
        own={"pretraining": "pretrain.preprocess"},
    ),
    "fit": Command(
        summary="Goes from raw data to a trained model and a page of it.",
        own={name: f"tools.fit --data_set={name}" for name in _FITTED},
    ),
    "train": _of_mode("train", "Trains a model, and evaluates its checkpoints.", True),
    "evaluate": _of_mode("evaluate", "Measures the best checkpoint of a run.", True),
    "sweep": Command(
        summary="Trains with many options, and tells which were best.",
        own={"": "tools.sweep"},
    ),
    "continuous_eval": dataclasses.replace(
        _of_mode("continuous_eval", "Measures each checkpoint as it is written."), own=_PRETRAINING
    ),
    "save_pretrained": Command(
        summary="Writes the folder of a pre-trained model, from which fine-tuning starts.",
        own=_PRETRAINING,
        flags="--run_mode=save_pretrained",
    ),
    "predict_records": _of_mode("predict_records", "Writes the predictions for TFRecords."),
    "export": _of_mode("export", "Writes the best checkpoint as a SavedModel."),
    "predict": _of_mode("predict", "Answers a raw file with an exported model."),
    "serve": Command(
        summary="Serves an exported model over HTTP, with a page to try it.",
        own={"": "tools.serve"},
    ),
    "convert": Command(
        summary="Converts a checkpoint of ETC, BERT or RoBERTa.",
        own={"": "tools.convert_checkpoint"},
    ),
    "draw": Command(
        summary="Draws who may attend to whom.",
        own={"": "tools.draw_attention"},
    ),
    "inspect": Command(
        summary="Writes a page that shows a model's attention.",
        own={"": "tools.inspect_attention"},
    ),
    "report": Command(
        summary="Writes a page of a run, its scores and its answers.",
        own={"": "tools.report"},
    ),
    "estimate": Command(
        summary="Tells what an ETC costs: operations, memory, the longest input that fits.",
        own={"": "tools.estimate"},
    ),
    "benchmark": Command(
        summary="Measures time and memory on this machine.",
        own={
            "": "tools.benchmark",
            "ingredients": "tools.benchmarks.ingredients",
            "input_rate": "tools.benchmarks.input_rate",
            "lifted_pretraining": "tools.benchmarks.lifted_pretraining",
            "long_positions": "tools.benchmarks.long_positions",
            "numerical_reasoning": "tools.benchmarks.numerical_reasoning",
            "preprocessing": "tools.benchmark_preprocessing",
            "preprocessing_dask": "tools.benchmarks.preprocessing_dask",
            "preprocessing_memory": "tools.benchmarks.preprocessing_memory",
            "processor": "tools.benchmarks.processor",
            "real_questions": "tools.benchmarks.real_questions",
            "real_tokens": "tools.benchmarks.real_tokens",
            "serving": "tools.benchmarks.serving",
            "serving_text": "tools.benchmarks.serving_text",
            "start_up": "tools.benchmarks.start_up",
            "systems": "tools.benchmarks.systems",
            "tiling": "tools.benchmarks.tiling",
            "ways": "tools.benchmarks.ways",
        },
    ),
    "demo": Command(
        summary="Goes the whole way on generated data, without a download.",
        own={
            "": "tools.run_demo",
            "ablations": "tools.ablations",
            "data": "tools.make_demo_data",
            "pretraining": "tools.run_pretrain_demo",
            "served": "tools.served_demo",
        },
    ),
    "docs": Command(
        summary="Serves the documentation site of a checkout.",
        own={"": "tools.docs"},
    ),
    "doctor": Command(
        summary="Tells versions, devices and what is missing, and tests this machine.",
        own={"": "tools.doctor"},
    ),
    "completion": Command(
        summary="Prints a script with which a shell completes commands and flags.",
        own={shell: f"tools.completion --shell={shell}" for shell in ("bash", "fish", "zsh")},
    ),
}


# By what one wants to do: the commands, in the order of `COMMANDS`.
AIMS = {
    "Make records of raw data": ("prepare", "preprocess"),
    "Train and measure": (
        "fit",
        "train",
        "evaluate",
        "sweep",
        "continuous_eval",
        "save_pretrained",
    ),
    "Use a trained model": ("predict_records", "export", "predict", "serve", "convert"),
    "See what a model does": ("draw", "inspect", "report"),
    "Know what it costs": ("estimate", "benchmark"),
    "Try, look up and check": ("demo", "docs", "doctor", "completion"),
}


def data_sets(program: str) -> dict[str, str]:
    """dict of each data set whose folder has this program to the program's module."""
    return {
        name: f"tasks.{name}.{program}"
        for name in _modules("tasks")
        if program in _modules(f"tasks.{name}")
    }


def pretrainings() -> dict[str, str]:
    """dict of what is trained without a data set, such as "pretraining", to its module."""
    return {
        name.removeprefix("run_"): f"pretrain.{name}"
        for name in _modules("pretrain")
        if name.startswith("run_") and name != "run_config"
    }


@functools.cache
def _modules(package: str) -> list[str]:
    """Names of the modules and packages in a package below `etcmodel`."""
    spec = importlib.util.find_spec(f"etcmodel.{package}")
    folders = spec.submodule_search_locations if spec else None
    return [module.name for module in pkgutil.iter_modules(folders or [])]
