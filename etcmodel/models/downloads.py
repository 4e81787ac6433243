"""The authors' released checkpoints, and what messages say when one is missing."""

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
# Names on the Hugging Face Hub: with their owner, or of the old ones that have none.
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+|[A-Za-z]\w*-[\w.-]+")
_FILE_NAME = re.compile(r".*\.(bin|ckpt|h5|index|json|pth?|safetensors|txt|ya?ml)(-\d+)?")
_URL = "https://storage.googleapis.com/gresearch/etcmodel/checkpoints/{}.zip"


def download_url(name):
    """The URL of the zip file of a released checkpoint.

    Args:
        name: str, one of `RELEASED_CHECKPOINTS`.
    """
    return _URL.format(name)


def download_hint(path):
    """A sentence that tells what to download, for the message that there is nothing at `path`.

    Args:
        path: path that was given. If it names a released checkpoint, the URL is that of this one;
            if it can be a name on the Hugging Face Hub, the command is told that fetches it; else
            the released checkpoints are named.
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
    """Whether a path has the form of a model's name there, and of no file or folder of a run."""
    owner = os.path.dirname(path)
    is_name = _HUB_NAME.fullmatch(path) and not _FILE_NAME.fullmatch(path)
    return bool(is_name) and not (owner and os.path.isdir(owner))
