"""How far the reading of raw files has come, for an estimate of the time that is left."""

import contextlib
import contextvars
import io

__all__ = ["ReadingMeter", "metered"]

_meter = contextvars.ContextVar("etcmodel_reading_meter", default=None)


class ReadingMeter:
    """Counts the bytes that are read from the files which `metered` wraps in its context.

    Args:
        total: int. Bytes of all files.
    """

    def __init__(self, total):
        self.total, self.read = total, 0

    @contextlib.contextmanager
    def active(self):
        """The context in which this meter counts."""
        token = _meter.set(self)
        try:
            yield self
        finally:
            _meter.reset(token)

    def seconds_left(self, seconds):
        """An estimate, where so much was read in this many seconds; None while there is none."""
        if not self.read:
            return None
        return max(0.0, seconds * (self.total / self.read - 1))


def metered(file):
    """The file itself, or one like it whose bytes are counted on reading.

    Args:
        file: binary file that can be read and positioned. Not yet unpacked.
    """
    meter = _meter.get()
    return file if meter is None else io.BufferedReader(_MeteredFile(file, meter), 1 << 16)


class _MeteredFile(io.RawIOBase):
    def __init__(self, file, meter):
        self._file, self._meter = file, meter

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._meter.read += len(data)
        return len(data)

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        before = self._file.tell()
        self._file.seek(offset, whence)
        self._meter.read += self._file.tell() - before
        return self._file.tell()

    def tell(self):
        return self._file.tell()

    def close(self):
        self._file.close()
        super().close()
