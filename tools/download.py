"""Downloads a checkpoint that the authors released, checks and unpacks it.

    python -m etcmodel.tools.download --name=etc_base_2x_pretrain

The zip comes from the authors' address. A download that was cut goes on where it was. The folder
gets its name only when all weights have been read into a model. Models of the Hugging Face Hub need
no command: `etcmodel.from_pretrained("allenai/longformer-base-4096")`.
"""

import dataclasses
import http.client
import os
import shutil
import sys
import time
import urllib.error
import urllib.request
import zipfile
import zlib

from etcmodel import atomic_files
from etcmodel.durations import format_duration
from etcmodel.models import downloads
from etcmodel.options import Options, option, run_program

_CHUNK = 2**20
_SECONDS_BETWEEN_LINES = 2.0
_TIMEOUT = 60  # Seconds without a byte.


@dataclasses.dataclass(frozen=True, kw_only=True)
class DownloadOptions(Options):
    """What to download, and to where."""

    name: str | None = option(
        None,
        "Checkpoint to download.",
        choices=downloads.RELEASED_CHECKPOINTS,
        is_needed=True,
    )
    output_dir: str | None = option(
        None, "Folder to create for it. None: the name of the checkpoint, in the current folder."
    )
    mirror: str | None = option(
        None,
        "Address of a folder with the zips of the checkpoints (http or https). None: the authors'.",
        example="https://example.org/etc",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.mirror and not self.mirror.startswith(("http://", "https://")):
            raise ValueError(
                f"--mirror must begin with http:// or https://. Received: {self.mirror!r}"
            )


def run(options):
    """Downloads as `DownloadOptions` say.

    Raises:
        ValueError: naming the folder, if there is something already; or the address, if the zip
            cannot be downloaded, is damaged or holds no checkpoint.
    """
    folder = os.path.normpath(options.output_dir or options.name)
    if os.path.exists(folder):
        raise ValueError(f"{folder!r} is there already. Choose another --output_dir.")
    url = downloads.download_url(options.name)
    if options.mirror:
        url = f"{options.mirror.rstrip('/')}/{options.name}.zip"
    os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
    part, unpacked = f"{folder}.{options.name}.zip.part", f"{folder}.unpacked"
    with atomic_files.held(f"{folder}.lock"):
        _download(url, part)
        shutil.rmtree(unpacked, ignore_errors=True)  # Of an earlier try.
        try:
            _check(_unpack(url, part, unpacked), url)
            os.rename(_root(unpacked), folder)
        finally:
            shutil.rmtree(unpacked, ignore_errors=True)
        os.remove(part)
    print(f"{folder}: load it by etcmodel.from_pretrained({folder!r}), or --init_checkpoint.")


def _download(url, part):
    """Appends to a file what it lacks of a URL's content."""
    size = os.path.getsize(part) if os.path.exists(part) else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={size}-"} if size else {})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            goes_on = response.status == http.HTTPStatus.PARTIAL_CONTENT
            begin = size if goes_on else 0
            length = response.headers.get("Content-Length")
            total = None if length is None else begin + int(length)
            with open(part, "ab" if goes_on else "wb") as file:
                _copy(response, file, begin, total)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and size:
            return  # All of it is there.
        raise ValueError(f"{url}: the server answers {error.code}, {error.reason}.") from None
    except (OSError, http.client.HTTPException) as error:
        raise ValueError(
            f"{url} could not be downloaded ({error}). Run this again: it goes on where it was."
        ) from None


def _copy(response, file, begin, total):
    """Copies a response to a file, with lines on the progress.

    Raises:
        OSError: if less comes than the server said.
    """
    done, start, last = begin, time.monotonic(), -_SECONDS_BETWEEN_LINES
    while chunk := response.read(_CHUNK):
        file.write(chunk)
        done += len(chunk)
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES or done == total:
            last = now
            print(_progress(done, total, (done - begin) / max(now - start, 1e-3)), file=sys.stderr)
    if total is not None and done < total:
        raise OSError(f"{done} of {total} bytes came")


def _progress(done, total, rate):
    """A line such as "310 of 614 MB, 5.2 MB/s, 58s left"."""
    if total is None:
        return f"{done / 1e6:,.0f} MB, {rate / 1e6:,.1f} MB/s"
    left = format_duration((total - done) / max(rate, 1))
    return f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB, {rate / 1e6:,.1f} MB/s, {left} left"


def _unpack(url, part, unpacked):
    """Unpacks a zip, whose sums are checked, to a folder; returns the folder of the checkpoint."""
    try:
        with zipfile.ZipFile(part) as archive:
            archive.extractall(unpacked)
    except OSError as error:  # Of the disk; what came is kept.
        raise ValueError(f"{part} could not be unpacked ({error}). Run this again.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        os.remove(part)
        raise ValueError(f"{url} is no whole zip ({error}). Run this again.") from None
    return _root(unpacked)


def _root(unpacked):
    """The folder of the checkpoint: the only one at the top of the zip, or the zip's top."""
    inside = [os.path.join(unpacked, name) for name in os.listdir(unpacked)]
    return inside[0] if len(inside) == 1 and os.path.isdir(inside[0]) else unpacked


def _check(folder, url):
    """Reads every weight; raises ValueError unless the folder has all that its config asks for."""
    from etcmodel import checkpoints  # With TensorFlow, for which --help need not wait.
    from etcmodel.checkpoints import coverage, sources

    try:
        model = checkpoints.from_pretrained(folder)
        coverage.check_config(sources.open_source(folder), model.config)
    except ValueError as error:
        words = " ".join(str(error).replace(folder, os.path.basename(folder)).split())
        raise ValueError(f"{url} holds no checkpoint that can be loaded: {words}") from None


if __name__ == "__main__":
    run_program(DownloadOptions, run)
