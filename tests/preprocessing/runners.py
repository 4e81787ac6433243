"""Runners that tell less than Beam's own, or break; they do their work with Beam's local one."""

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import fn_runner
from apache_beam.runners.runner import PipelineResult, PipelineState


class MinimalOptions(PipelineOptions):
    @classmethod
    def _add_argparse_args(cls, parser):
        parser.add_argument("--minimal_level", "--minimal-level", dest="level_of_it", type=int)
        parser.add_argument("--no_minimal_part", dest="minimal_part", action="store_false")
        parser.add_argument("--minimal_place", dest="minimal_places", action="append")


class MoreOptions(MinimalOptions):
    @classmethod
    def _add_argparse_args(cls, parser):
        parser.add_argument("--minimal_more")


class Minimal(fn_runner.FnApiRunner):
    """Works as it is called; its result knows no metrics and no end to wait for."""

    def run_pipeline(self, pipeline, options):
        super().run_pipeline(pipeline, options)
        return PipelineResult(PipelineState.RUNNING)


class BreaksAtTheEnd(fn_runner.FnApiRunner):
    def run_pipeline(self, pipeline, options):
        super().run_pipeline(pipeline, options)
        raise RuntimeError("lost the\nconnection")


class DoesNothing(fn_runner.FnApiRunner):
    def run_pipeline(self, pipeline, options):
        return PipelineResult(PipelineState.DONE)


class Cancelled(fn_runner.FnApiRunner):
    def run_pipeline(self, pipeline, options):
        return PipelineResult(PipelineState.CANCELLED)


class Unmakable(fn_runner.FnApiRunner):
    def __init__(self):
        raise RuntimeError("there is no license")
