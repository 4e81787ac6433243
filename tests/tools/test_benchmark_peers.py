"""Which models `benchmark` measures at a length, and in what."""

from etcmodel.tools.benchmark import BenchmarkOptions, make_workers

PYTHONS = {"torch_python": "torch/python", "keras_hub_python": "keras/python"}


def asked(length, **fields):
    """dict of each model's name to what is measured of it."""
    workers = make_workers(length, 16, BenchmarkOptions(**fields))
    return {worker.name: worker.phases for worker in workers}


def test_without_other_libraries_there_are_this_one_and_bert():
    both = ("forward", "train")
    assert asked(512) == {
        "etc": both,
        "etc bfloat16": ("forward",),
        "etc checkpointed": ("train",),
        "bert": both,
    }


def test_other_libraries_read_and_train_only_where_they_are_asked_to():
    peers = {
        "hf longformer",
        "hf bigbird",
        "hf bert",
        "hf modernbert",
        "keras-hub bert",
        "keras-hub fnet",
        "keras-hub roformer",
    }
    assert asked(512, models=(), **PYTHONS) == dict.fromkeys(peers, ("forward",))
    trained = asked(512, models=(), peer_train_max_length=512, **PYTHONS)
    assert trained == dict.fromkeys(peers, ("forward", "train"))
    assert asked(513, models=(), peer_train_max_length=512, **PYTHONS).keys() == peers
    assert set(asked(513, models=(), peer_train_max_length=512, **PYTHONS).values()) == {
        ("forward",)
    }


def test_models_with_full_attention_read_no_longer_inputs_than_asked():
    read = asked(8192, models=("bert",), bert_max_length=4096, **PYTHONS)
    assert read.keys() == {"hf longformer", "hf bigbird", "hf modernbert", "keras-hub fnet"}


def test_single_models_can_be_chosen():
    chosen = {"torch_models": ("modernbert",), "keras_hub_models": ("bert",)}
    assert asked(64, models=("etc",), **chosen, **PYTHONS).keys() == {
        "etc",
        "hf modernbert",
        "keras-hub bert",
    }
