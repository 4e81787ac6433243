"""The flags of the authors' release that are called otherwise here, so that its commands run.

A further name of a flag is an alias; a flag that says something in another way is translated, and
one that has no meaning here is accepted: each of the latter two with a line that tells so.
"""

import dataclasses
import os
import types

from absl import flags

__all__ = ["NO_EFFECT", "ReleaseFlags"]

flags.disclaim_key_flags()  # The flags are those of the program that calls, as --help shows them.

_DEFINERS = {bool: flags.DEFINE_bool, str: flags.DEFINE_string}

# Flags of every program of the release, with their kind and why they do nothing.
NO_EFFECT = types.MappingProxyType(
    {
        "iterations_per_loop": (str, "steps run until the next report or checkpoint is due"),
        "master": (str, "--tpu_name takes the address of a TPU, too"),
        "tpu_job_name": (str, "TensorFlow finds the TPU's workers by --tpu_name"),
        "num_tpu_cores": (str, "all cores of the TPU are used"),
        "verbose_logging": (bool, "--verbosity says how much is logged"),
    }
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleaseFlags:
    """What a program takes of the release's flags, beside those that have kept their names.

    Attributes:
        aliases: dict of a further name to the flag.
        modes: dict of a flag such as `do_train` to the value of --run_mode that it means.
        eval_flags: dict of a flag that in an evaluation by one of `modes` means another one, to
            that one.
        predict_means_eval: names of the flags of the evaluation's records and of the raw input: if
            --run_mode=predict has the first without the second, every checkpoint is evaluated.
        predictions_name: (flag, suffix): the name of the predictions' file in --output_dir.
        no_effect: dict of a flag to (bool or str, why it has no effect).
    """

    aliases: dict = dataclasses.field(default_factory=dict)
    modes: dict = dataclasses.field(default_factory=dict)
    eval_flags: dict = dataclasses.field(default_factory=dict)
    predict_means_eval: tuple = ()
    predictions_name: tuple = ()
    no_effect: dict = dataclasses.field(default_factory=lambda: dict(NO_EFFECT))

    def define(self, flag_values):
        """Defines the flags; those that they stand for must be defined."""
        for name, original in self.aliases.items():
            flag = flag_values[original]
            flags.DEFINE(
                flag.parser,
                name,
                None,
                f"The release's name of --{original}.",
                flag_values=flag_values,
                serializer=flag.serializer,
            )
        for name, mode in self.modes.items():
            flags.DEFINE_bool(
                name, None, f"The release's name of --run_mode={mode}.", flag_values=flag_values
            )
        if self.predictions_name:
            name, suffix = self.predictions_name
            help_text = (
                f"The release's --predictions_file: its name in --output_dir, without {suffix}."
            )
            flags.DEFINE_string(name, None, help_text, flag_values=flag_values)
        flags.DEFINE_bool(
            "use_tpu",
            None,
            "The release's --distribution_strategy=tpu.",
            flag_values=flag_values,
        )
        for name, (kind, why) in self.no_effect.items():
            help_text = f"Accepted, as the release has it; no effect: {why}."
            _DEFINERS[kind](name, None, help_text, flag_values=flag_values)

    def resolve(self, flag_values):
        """Sets the flags that the given ones stand for.

        Args:
            flag_values: parsed `flags.FlagValues`.
        Returns:
            list of str: a line for each flag that is translated or has no effect.
        Raises:
            ValueError: if two flags say different things; names both.
        """
        values = _Values(flag_values)
        for name, original in self.aliases.items():
            if values.is_given(name):
                values.set(original, values[name], because_of=f"--{name}={values.text(name)}")
        lines = self._resolve_mode(values)
        lines += self._resolve_tpu(values)
        for name, (_, why) in self.no_effect.items():
            if values.is_given(name):
                lines.append(f"--{name} has no effect here: {why}.")
        return lines

    def _resolve_mode(self, values):
        given = [name for name in self.modes if values.is_given(name)]
        chosen = [name for name in given if values[name]]
        if len(chosen) > 1:
            names = " and ".join(f"--{name}" for name in chosen)
            raise ValueError(f"{names} are jobs of their own. Give one of them.")
        if given and not chosen and not values.is_given("run_mode"):
            raise ValueError(
                f"There is nothing to do: --{given[0]}={values.text(given[0])}. Give --run_mode."
            )
        if chosen:
            mode = self.modes[chosen[0]]
            old = f"--{chosen[0]}={values.text(chosen[0])}"
            return [values.translate(old, "run_mode", mode), *self._resolve_eval(values, mode)]
        if self.predict_means_eval and values["run_mode"] == "predict":
            records, raw_input = self.predict_means_eval
            if values.is_given(records) and not values.is_given(raw_input):
                values.forget("run_mode")
                old = f"--run_mode=predict with --{records}"
                line = values.translate(old, "run_mode", "continuous_eval")
                return [line, *self._resolve_eval(values, "continuous_eval")]
        return []

    def _resolve_eval(self, values, mode):
        """What else is meant by an evaluation that is asked for as the release has it."""
        if mode not in ("continuous_eval", "predict_records"):
            return []
        lines = []
        for name, meant in self.eval_flags.items():
            if values.is_given(name) and not values.is_given(meant):
                value, text = values[name], f"--{name}"
                values.forget(name)
                lines.append(values.translate(f"{text} of an evaluation", meant, value))
        if (
            mode == "continuous_eval"
            and values.is_given("predict_batch_size")
            and not values.is_given("eval_batch_size")
        ):
            size = values["predict_batch_size"]
            old = "--predict_batch_size of an evaluation"
            lines.append(values.translate(old, "eval_batch_size", size))
        name, suffix = self.predictions_name or (None, None)
        if name and values.is_given(name):
            path = os.path.join(values["output_dir"] or "", values[name] + suffix)
            lines.append(values.translate(f"--{name}", "predictions_file", path))
        return lines

    def _resolve_tpu(self, values):
        if not values.is_given("use_tpu"):
            return []
        old = f"--use_tpu={values.text('use_tpu')}"
        strategy = values["distribution_strategy"]
        if values["use_tpu"]:
            return [values.translate(old, "distribution_strategy", "tpu")]
        if strategy == "tpu":
            raise ValueError(f"{old} contradicts --distribution_strategy=tpu. Give one of them.")
        return []


class _Values:
    """Parsed flags that can be set as if they had been given."""

    def __init__(self, flag_values):
        self._flags = flag_values

    def __getitem__(self, name):
        return self._flags[name].value

    def is_given(self, name):
        return bool(self._flags[name].present)

    def text(self, name):
        """The value as on a command line."""
        value = self[name]
        if isinstance(value, bool):
            return str(value).lower()
        return ",".join(value) if isinstance(value, list) else str(value)

    def set(self, name, value, *, because_of):
        """Sets a flag because of another one; refuses to change what was given."""
        flag = self._flags[name]
        if flag.present and flag.value != value:
            raise ValueError(
                f"{because_of} contradicts --{name}={self.text(name)}. Give one of them."
            )
        flag.value = value
        flag.present += 1
        flag.using_default_value = False

    def translate(self, old, name, value):
        """Sets a flag and returns the line that tells so; `old` is what stood for it."""
        self.set(name, value, because_of=old)
        return f"{old} is read as --{name}={self.text(name)}."

    def forget(self, name):
        """As if the flag had not been given."""
        self._flags[name].unparse()
