"""Models of the Hugging Face Hub, by name.

Nothing is downloaded unless a name is given. TensorFlow is not needed.
"""

import functools
import os
import re

from etcmodel import extras

PREFIX = "hf:"
# Names with an owner, or old ones without.
_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+|[A-Za-z]\w*-[\w.-]+")
_FILE_NAME = re.compile(r".*\.(bin|ckpt|h5|index|json|pth?|safetensors|txt|ya?ml)(-\d+)?")
# Lengths of texts of sentence-transformers; older files are named after the kind of encoder.
SENTENCE_CONFIGS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
# The files of a model that are read, besides those of its weights.
_FILES = (
    *SENTENCE_CONFIGS,
    "1_Pooling/config.json",
    "adapter_config.json",  # A model with one is refused.
    "added_tokens.json",
    "bert_config.json",
    "config.json",
    "config_sentence_transformers.json",
    "etc_config.json",
    "generation_config.json",
    "head_config.json",
    "merges.txt",
    "modules.json",
    "processor_config.json",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
)
# Where the encoder lies: older folders of sentence-transformers have one for it.
_FOLDERS = ("", "0_Transformer/")
# The weights, of which one kind is read: an index names several files.
_WEIGHTS = (
    ("model.safetensors",),
    ("model.safetensors.index.json", "model-*-of-*.safetensors"),
    ("tf_model.h5",),
    ("pytorch_model.bin",),
    ("pytorch_model.bin.index.json", "pytorch_model-*-of-*.bin"),
)


def may_be_a_name(path):
    """Whether a path has the form of a model's name there, and not of a local file or folder."""
    owner = os.path.dirname(path)
    is_name = _NAME.fullmatch(path) and not _FILE_NAME.fullmatch(path)
    return bool(is_name) and not (owner and os.path.isdir(owner))


def local_folder(path, revision=None, with_weights=True):
    """Returns the folder of a model, after downloading one that is given by `hf:` and its name.

    Only files that are read are downloaded, with a progress bar, to the cache of the package
    `huggingface_hub`, whose environment variables (`HF_HOME`, `HF_TOKEN`, `HF_HUB_OFFLINE`,
    `HF_ENDPOINT` …) apply. Without a connection, a model is taken from the cache.

    Args:
        path: str. `hf:NAME` or `hf:NAME@REVISION`, such as `hf:allenai/longformer-base-4096`; any
            other path is returned unchanged.
        revision: str or None. The branch, tag or commit of the model, if not in `path`; None for
            "main".
        with_weights: bool. False for the files of the vocabulary and of configs alone.
    Raises:
        ValueError: naming the model and what to do, if it is not there, or private, or cannot be
            downloaded; or if a local path has a revision.
        extras.MissingExtraError: if `huggingface_hub` is not installed.

    >>> from etcmodel import hub
    >>> hub.local_folder("my_model")
    'my_model'
    """
    if not path.startswith(PREFIX):
        if revision is not None:
            raise ValueError(
                f"`revision` is of models of the Hugging Face Hub. Received: {revision!r} with the "
                f"folder {path!r}"
            )
        return path
    name, _, in_path = path.removeprefix(PREFIX).partition("@")
    if in_path and revision not in (None, in_path):
        raise ValueError(f"{path!r} and `revision`, {revision!r}, name two revisions.")
    return _fetched(name, in_path or revision, with_weights)


@functools.cache
def _fetched(name, revision, with_weights):
    reason = f"{PREFIX}{name} is a model of the Hugging Face Hub. (Or fetch it elsewhere by "
    reason += f"`hf download {name} --local-dir FOLDER`, and give that folder.)"
    with extras.needed("hub", reason):
        import huggingface_hub
    endpoint = os.environ.get("HF_ENDPOINT") or None
    options = {"repo_id": name, "revision": revision, "endpoint": endpoint}
    try:
        found = _files(huggingface_hub.HfApi(endpoint=endpoint), name, revision, with_weights)
        every = [*_FILES, *(file for kind in _WEIGHTS for file in kind)]
        every = [folder + file for folder in _FOLDERS for file in every]
        patterns = every if found is None else found
        options |= {"allow_patterns": patterns, "local_files_only": found is None}
        folder = huggingface_hub.snapshot_download(**options)
    except Exception as error:  # The package has many kinds, and those of its network library.
        raise ValueError(_told(error, name, revision)) from None
    from absl import logging  # `etcmodel --help` does not wait for it.

    logging.info("%s%s is in %s", PREFIX, name, folder)
    return folder


def _files(api, name, revision, with_weights):
    """The files of a model that are read: a list; None without a connection."""
    from huggingface_hub import errors

    try:
        listed = [x.rfilename for x in api.model_info(name, revision=revision).siblings]
    except errors.OfflineModeIsEnabled:
        return None
    except errors.HfHubHTTPError as error:
        if error.response is not None and error.response.status_code < 500:
            raise
        return None
    except errors.HFValidationError:
        raise
    except Exception:  # Of the network library, which differs by version.
        return None
    kinds = [[folder + file for file in kind] for folder in _FOLDERS for kind in _WEIGHTS]
    weights = next((kind for kind in kinds if kind[0] in listed), None) if with_weights else ()
    if weights is None:
        raise _NoWeightsError(f"has none of {', '.join(kind[0] for kind in _WEIGHTS)}")
    files = (folder + file for folder in _FOLDERS for file in _FILES)
    return [*(file for file in files if file in listed), *weights]


class _NoWeightsError(ValueError):
    """A model without weights in a format that is read."""


def _told(error, name, revision):
    """The message of an error of `huggingface_hub`: one line, with what to do."""
    from huggingface_hub import errors

    shown = f"{PREFIX}{name}" + (f"@{revision}" if revision else "")
    if isinstance(error, _NoWeightsError):
        return f"{shown} {error}."
    if isinstance(error, errors.GatedRepoError):
        return f"{shown}: its owner must grant access to it; then log in by `hf auth login`."
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            f"{shown}: the Hugging Face Hub has no such model, or it is private; then log in by "
            "`hf auth login`."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{shown}: the model has no such revision."
    words = " ".join(str(error).split())[:200]
    if isinstance(error, errors.HFValidationError):
        return f"{shown} is no name of a model, which has the form OWNER/NAME."
    if isinstance(error, errors.LocalEntryNotFoundError):
        return (
            f"{shown} is not in the cache, and the Hugging Face Hub was not reached. With a "
            f"connection: `hf download {name}`."
        )
    return f"{shown} could not be downloaded ({type(error).__name__}: {words}). Try again."
