"""From raw files to sharded TFRecords, as a Beam pipeline that every task shares."""

from etcmodel.preprocessing.job import Job, run, shard_names
from etcmodel.preprocessing.records import BadExampleError, Converted, to_tf_example

__all__ = ["BadExampleError", "Converted", "Job", "run", "shard_names", "to_tf_example"]
