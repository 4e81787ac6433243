"""The authors' released checkpoints, and hints for messages when one is missing."""

import os
import pathlib
import re

__all__ = ["RELEASED_CHECKPOINTS", "download_hint", "download_url"]

# Each is a zip of the checkpoint, its config and its vocabulary.
RELEASED_CHECKPOINTS = (
    "etc_base_2x_pretrain",
    "etc_base_2x_pretrain_42relmaxdist",
    "etc_large",
    "etc_large_split_punctuation",
)
# Names on the Hugging Face Hub: with an owner, or one of the old names without.
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+|[A-Za-z]\w*-[\w.-]+")
_FILE_NAME = re.compile(r".*\.(bin|ckpt|h5|index|json|pth?|safetensors|txt|ya?ml)(-\d+)?")
_URL = "https://storage.googleapis.com/gresearch/etcmodel/checkpoints/{}.zip"


def download_url(name):
    """Returns the URL of a released checkpoint's zip file.

    Args:
        name: str, one of `RELEASED_CHECKPOINTS`.
    """
    return _URL.format(name)


def download_hint(path):
    """Returns a sentence on what to download, for the message that nothing exists at `path`.

    Args:
        path: the given path. If it names a released checkpoint, the hint has its URL; if it may be
            a name on the Hugging Face Hub, the command that fetches it; else it lists the released
            checkpoints.
    """
    path = os.fspath(path)
    named = [part for part in pathlib.PurePath(path).parts if part in RELEASED_CHECKPOINTS]
    if not named and _may_be_on_the_hub(path):
        folder = os.path.basename(path)
        return (
            "Nothing is downloaded here: if this is a model of the Hugging Face Hub, fetch it by "
            f"`hf download {path} --local-dir {folder}`, and give that folder."
        )
    return (
        f"The released checkpoints are {', '.join(RELEASED_CHECKPOINTS)}: download and unpack "
        f"{download_url(named[-1] if named else '<name>')}."
    )


def _may_be_on_the_hub(path):
    """Whether a path has the form of a model's name there, and not of a local file or folder."""
    owner = os.path.dirname(path)
    is_name = _HUB_NAME.fullmatch(path) and not _FILE_NAME.fullmatch(path)
    return bool(is_name) and not (owner and os.path.isdir(owner))
