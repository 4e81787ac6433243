"""A small local Dask cluster in which one worker can be killed half-way."""

import contextlib
import os
import signal

from etcmodel import extras

with extras.needed("dev"):
    import distributed

__all__ = ["RUNNER", "Killer", "beam_args", "local_cluster"]

RUNNER = "--runner=apache_beam.runners.dask.dask_runner.DaskRunner"


class Killer(distributed.SchedulerPlugin):
    """Kills the first worker that has written some of the shards, with all of its data.

    Args:
        cluster: `distributed.LocalCluster`.

    Attributes:
        killed: list of int. The id of its process, once it is killed.
    """

    def __init__(self, cluster):
        self._cluster, self.killed = cluster, []

    def transition(self, key, start, finish, *args, worker=None, **kwargs):
        if finish == "memory" and "shuffle-shuffle-join" in str(key) and not self.killed:
            pids = {one.worker_address: one.pid for one in self._cluster.workers.values()}
            self.killed.append(pids[worker])
            os.kill(pids[worker], signal.SIGKILL)


@contextlib.contextmanager
def local_cluster():
    """Two worker processes of one thread; a worker that dies is replaced, as Dask does it."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


def beam_args(cluster):
    """Apache Beam's flags for both workers of the cluster: list of str."""
    return [RUNNER, f"--dask_client_address={cluster.scheduler_address}", "--dask_npartitions=2"]
