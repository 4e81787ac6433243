"""The authors' released checkpoints, and what messages say when one is missing."""

import pathlib

__all__ = ["RELEASED_CHECKPOINTS", "download_hint", "download_url"]

# Each is a zip of the checkpoint, its config and its vocabulary.
RELEASED_CHECKPOINTS = (
    "etc_base_2x_pretrain",
    "etc_base_2x_pretrain_42relmaxdist",
    "etc_large",
    "etc_large_split_punctuation",
)
_URL = "https://storage.googleapis.com/gresearch/etcmodel/checkpoints/{}.zip"


def download_url(name):
    """The URL of the zip file of a released checkpoint.

    Args:
        name: str, one of `RELEASED_CHECKPOINTS`.
    """
    return _URL.format(name)


def download_hint(path):
    """A sentence with names and URL, for the message that there is nothing at `path`.

    Args:
        path: path that was given. If it names a released checkpoint, the URL is that of this one.
    """
    named = [part for part in pathlib.PurePath(path).parts if part in RELEASED_CHECKPOINTS]
    return (
        f"The released checkpoints are {', '.join(RELEASED_CHECKPOINTS)}: download and unpack "
        f"{download_url(named[-1] if named else '<name>')}."
    )
