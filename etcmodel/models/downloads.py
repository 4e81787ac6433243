"""The authors' released checkpoints, and hints for messages when a model is missing."""

import os
import pathlib

from etcmodel import hub

# Each is a zip of the checkpoint, its config and its vocabulary.
RELEASED_CHECKPOINTS = (
    "etc_base_2x_pretrain",
    "etc_base_2x_pretrain_42relmaxdist",
    "etc_large",
    "etc_large_split_punctuation",
)
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
    if not named and hub.may_be_a_name(path):
        folder = os.path.basename(path)
        return (
            f"If this is a model of the Hugging Face Hub, give it as {hub.PREFIX}{path}, or fetch "
            f"it by `hf download {path} --local-dir {folder}`, and give that folder."
        )
    return (
        f"The released checkpoints are {', '.join(RELEASED_CHECKPOINTS)}: "
        f"`etcmodel download {named[-1] if named else 'NAME'}`."
    )
