"""Devices: a `tf.distribute` strategy by Model Garden's helper, and the precision they have."""

import json
import os

import tensorflow as tf
from absl import logging

from etcmodel import onednn, program_end
from etcmodel.shown_values import shortened
from etcmodel.training import model_garden

_CLUSTER = "TF_CONFIG"


def build_strategy(config):
    """Creates the strategy that `config.distribution_strategy` names.

    A program calls this before any other TensorFlow operation: multi_worker_mirrored can open its
    connections (see the environment variable TF_CONFIG) only at start-up.

    Args:
        config: TrainingConfig.
    Returns:
        tf.distribute.Strategy. Without a GPU, `mirrored` uses all logical CPU devices: one, unless
        the caller has configured more.
    Raises:
        ValueError: if there are fewer GPUs than requested, `tpu` has no `tpu_name` or one that
            cannot be reached, or TF_CONFIG is wrong.

    >>> from etcmodel import training
    >>> strategy = training.build_strategy(training.TrainingConfig(output_dir="run"))
    >>> strategy.num_replicas_in_sync
    1
    """
    name = config.distribution_strategy
    if name == "tpu":
        return _tpu_strategy(config)
    _warn_who_trains_alone(name)
    if name == "multi_worker_mirrored":
        return _strategy_of_workers(name)
    num_gpus = _num_gpus(config)
    if name == "mirrored":
        cpus = [device.name for device in tf.config.list_logical_devices("CPU")]
        if num_gpus == 0 and len(cpus) > 1:
            return tf.distribute.MirroredStrategy(cpus)
        if num_gpus == 0:
            logging.warning("There is no GPU for distribution_strategy=mirrored: the CPU trains.")
        return model_garden.get_distribution_strategy(name, num_gpus=num_gpus)
    return model_garden.get_distribution_strategy(name, num_gpus=min(num_gpus, 1))


def precision_of(config):
    """The precision policy of `config.mixed_precision`, where 'auto' depends on the devices.

    Warns of mixed_bfloat16 on a processor without instructions for it, which takes longer there.

    Args:
        config: TrainingConfig.
    Returns:
        str. One of the policies' names: 'float32', 'mixed_bfloat16' or 'mixed_float16'.

    >>> from etcmodel import training
    >>> config = training.TrainingConfig(output_dir="run", mixed_precision="mixed_float16")
    >>> training.precision_of(config)
    'mixed_float16'
    """
    name, gpus = config.mixed_precision, tf.config.list_physical_devices("GPU")
    if config.distribution_strategy == "tpu":
        is_fast = True
    elif gpus:
        details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
        is_fast = all(x.get("compute_capability", (0, 0)) >= (8, 0) for x in details)
    else:
        known = onednn.instructions()
        is_fast = "avx512_bf16" in known or "amx_bf16" in known
        if name == "mixed_bfloat16" and known and not is_fast:
            logging.warning(
                "This processor has no instructions for bfloat16: mixed_precision=mixed_bfloat16 "
                "takes longer than float32, which mixed_precision=auto chooses here."
            )
    return ("mixed_bfloat16" if is_fast else "float32") if name == "auto" else name


def is_chief(strategy):
    """Whether this process is the one that writes files; True unless there are several."""
    return strategy.extended.should_checkpoint


def is_of_many_workers(strategy):
    """Whether the strategy has several processes that step together."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def _warn_who_trains_alone(name):
    """Warns if the strategy and TF_CONFIG differ in whether several processes train together."""
    workers = _workers()
    if name == "multi_worker_mirrored" and not workers:
        logging.warning(
            f"{_CLUSTER} is not set, which tells distribution_strategy={name} the processes of the "
            "training: this one works alone."
        )
    if name != "multi_worker_mirrored" and len(workers) > 1:
        logging.warning(
            f"{_CLUSTER} names {len(workers)} processes, and distribution_strategy={name} is of "
            "one: it works alone. For all of them, give multi_worker_mirrored."
        )


def _workers():
    """The addresses in TF_CONFIG that train together: list; empty if it has none."""
    try:
        cluster = json.loads(os.environ.get(_CLUSTER) or "{}")["cluster"]
        return [place for job in ("chief", "worker") for place in cluster.get(job, ())]
    except (ValueError, LookupError, TypeError, AttributeError):
        return []  # TensorFlow tells what is wrong with it.


def _strategy_of_workers(name):
    try:
        return model_garden.get_distribution_strategy(name)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        if _CLUSTER not in os.environ:
            raise
        given = shortened(os.environ[_CLUSTER], 300)
        raise ValueError(f"{_CLUSTER}={given}: {error}") from error


def _num_gpus(config):
    found = len(tf.config.list_logical_devices("GPU"))
    if config.num_gpus > found:
        raise ValueError(
            f"`num_gpus` must be at most {found}, the GPUs of this machine. "
            f"Received: {config.num_gpus}"
        )
    return found if config.num_gpus < 0 else config.num_gpus


def _tpu_strategy(config):
    if config.tpu_name is None:
        raise ValueError("`tpu_name` must be given for distribution_strategy=tpu")
    try:
        address = _tpu_address(config)
        return model_garden.get_distribution_strategy("tpu", tpu_address=address)
    except Exception as error:  # From TensorFlow, the network, Google's credentials or packages.
        reason = program_end.error_line(error).partition("\n")[0].partition(". ")[0]
        raise ValueError(
            f"No TPU can be used as tpu_name={config.tpu_name!r}: {shortened(reason, 300)}. "
            "Without one, give distribution_strategy=one_device, and no --use_tpu."
        ) from error


def _tpu_address(config):
    if config.tpu_zone is None and config.gcp_project is None:
        return config.tpu_name
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
        tpu=config.tpu_name, zone=config.tpu_zone, project=config.gcp_project
    )
    return resolver.get_master()
