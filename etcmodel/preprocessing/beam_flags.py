"""Parses flags of Apache Beam with Beam's own parsers; errors are in one line.

TensorFlow is not needed.
"""

import argparse
import contextlib
import dataclasses
import difflib
import itertools
import re

from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, WorkerOptions
from apache_beam.portability.api import beam_provision_api_pb2
from apache_beam.runners.direct import direct_runner
from apache_beam.runners.portability.fn_api_runner import fn_runner
from apache_beam.runners.portability.portable_runner import JobServiceHandle
from apache_beam.runners.runner import PipelineRunner, create_runner

_DEFAULT_RUNNER = "DirectRunner"
_ADDRESS = re.compile(r"(\w+://)?[\w.\[\]-]+:\d+/?")


@dataclasses.dataclass(frozen=True)
class BeamFlags:
    """Valid Beam flags.

    Attributes:
        options: `PipelineOptions` of the flags.
        runner: `PipelineRunner`.
        runner_flag: str. The flag that names the runner.
        services: tuple of str. The flags that contain an address.
    """

    options: PipelineOptions
    runner: PipelineRunner
    runner_flag: str
    services: tuple = ()

    def services_question(self):
        """A hint for a user whose runner failed: str; '' if no flag contains an address."""
        return f"Is the service of {' '.join(self.services)} up?" if self.services else ""


def parse(args, direct_num_workers=0, *, default_num_workers=1, own_names=()):
    """Parses flags of Beam, and of the module of the runner that they name.

    Args:
        args: sequence of str. Flags as `--flag=value`, or `--flag` and `value`.
        direct_num_workers: int. The job's number of local processes, or 0 for the default.
        default_num_workers: int. The default number of local processes.
        own_names: names of flags that are not Beam's, to suggest for misspelled ones.
    Returns:
        `BeamFlags`.
    Raises:
        ValueError: in one line that names the flag, for a flag unknown to Beam and to the runner's
            module, a wrong value, a runner that cannot be loaded, or flags that contradict the job.
    """
    args = list(args)
    name = _parsed(_parser(), args)[0].runner
    name = _DEFAULT_RUNNER if name is None else name
    runner = _make_runner(name)
    parser = _parser()  # Now with the options that the runner's module defines.
    known, unknown = _parsed(parser, args)
    if unknown:
        raise ValueError(_unknown(unknown[0], parser, own_names))
    _check_agreement(known, direct_num_workers)
    options = PipelineOptions(args)
    if known.default_sdk_harness_log_level is None:
        options.view_as(WorkerOptions).default_sdk_harness_log_level = "CRITICAL"  # Reported.
    _set_local_workers(options, known, direct_num_workers or default_num_workers)
    if type(runner) is direct_runner.DirectRunner:
        runner = _local_runner(options)
    return BeamFlags(options, runner, f"--runner={name}", _services(args))


def _parser():
    """Beam's own parser for all options known so far."""
    parsers = []
    try:
        PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
    except argparse.ArgumentError as error:
        raise ValueError(f"Apache Beam's flags: {error}") from error
    (parser,) = parsers
    for options_class in _indirect_subclasses():
        with contextlib.suppress(argparse.ArgumentError):  # One of its flags is already defined.
            options_class._add_argparse_args(parser)
    parser.error = _refuse
    parser.print_help = lambda: _refuse("--help shows the flags of this program.")
    return parser


def _indirect_subclasses():
    """Options that a runner receives, but that Beam's list of all options does not include."""
    found = [sub for direct in PipelineOptions.__subclasses__() for sub in direct.__subclasses__()]
    for options_class in found:
        found += options_class.__subclasses__()
    return [found_class for found_class in found if "_add_argparse_args" in vars(found_class)]


class _RefusedError(ValueError):
    """A parser's message about an argument."""


def _refuse(message):
    raise _RefusedError(f"Apache Beam's flags: {message}")


def _parsed(parser, args):
    """(values, unknown arguments); values checked by `_check_agreement` default to None."""
    asked = ("direct_num_workers", "direct_running_mode", "default_sdk_harness_log_level")
    values = argparse.Namespace(**dict.fromkeys(asked))
    try:
        return parser.parse_known_args(args, values)
    except _RefusedError:
        raise
    except Exception as error:  # Beam's parsing of some values raises errors of many kinds.
        raise ValueError(f"{_culprit(parser, args)!r} of Apache Beam's flags: {error}") from error


def _culprit(parser, args):
    """The first argument for which parsing fails with other than the parser's own errors."""
    for end in range(1, len(args)):
        try:
            parser.parse_known_args(args[:end])
        except _RefusedError:
            continue  # It lacks its value, which is the next argument.
        except Exception:
            return args[end - 1]
    return args[-1]


def _unknown(arg, parser, own_names):
    if not arg.startswith("-"):
        return f"Unknown argument {arg!r}: it belongs to no flag."
    name = arg.split("=")[0]
    beams = [string for action in parser._actions for string in action.option_strings]
    known = sorted({f"--{own}" for own in own_names} | set(beams) - {"-h", "--help"})
    alike = [flag for flag in known if len(name) > 3 and flag.startswith(name)]
    alike = alike or difflib.get_close_matches(name, known, 1)
    proposal = f" Did you mean {alike[0]}?" if alike else ""
    return f"Unknown flag {arg!r}: it is not one of Apache Beam's either.{proposal}"


def _make_runner(name):
    try:
        runner = create_runner(name)
    except ImportError as error:
        raise ValueError(
            f"--runner={name}: {error}. Install the package that the runner needs (such as by "
            "pip install 'apache-beam[dask]' for Dask's), or correct the name."
        ) from error
    except Exception as error:
        raise ValueError(f"--runner={name}: {error}") from error
    if not isinstance(runner, PipelineRunner):
        raise ValueError(f"--runner={name}: this is no PipelineRunner of Apache Beam.")
    return runner


def _check_agreement(known, direct_num_workers):
    if direct_num_workers and known.direct_num_workers not in (None, direct_num_workers):
        raise ValueError(
            f"--direct_num_workers={known.direct_num_workers} of Apache Beam contradicts "
            f"direct_num_workers={direct_num_workers} of the job. Give one of them."
        )
    num_workers = direct_num_workers or known.direct_num_workers or 1
    if num_workers > 1 and known.direct_running_mode == "in_memory":
        raise ValueError(
            f"--direct_running_mode=in_memory, which is one process, contradicts "
            f"--direct_num_workers={num_workers}. Give one of them."
        )
    if known.no_wait_until_finish:
        raise ValueError(
            "--no_wait_until_finish: the files get their names when the job is done. Leave it out."
        )


def _set_local_workers(options, known, num_workers):
    direct = options.view_as(DirectOptions)
    in_memory = known.direct_running_mode == "in_memory"
    direct.direct_num_workers = 1 if in_memory else known.direct_num_workers or num_workers
    if known.direct_running_mode is None:
        mode = "multi_processing" if direct.direct_num_workers > 1 else "in_memory"
        direct.direct_running_mode = mode


def _local_runner(options):
    """Beam's local runner in this process's own Python.

    Beam's `DirectRunner` first tries Prism, a program that it downloads.
    """
    encoded = JobServiceHandle.encode_pipeline_options(options.get_all_options())
    information = beam_provision_api_pb2.ProvisionInfo(pipeline_options=encoded)
    return fn_runner.FnApiRunner(provision_info=fn_runner.ExtendedProvisionInfo(information))


def _services(args):
    """The flags whose values are addresses, each as one string."""
    pairs = itertools.zip_longest(args, args[1:], fillvalue="")
    whole = [arg if "=" in arg else f"{arg}={value}" for arg, value in pairs if arg[:2] == "--"]
    return tuple(flag for flag in whole if _ADDRESS.fullmatch(flag.partition("=")[2]))
