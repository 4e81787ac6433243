"""The authors' checkpoints are downloaded, checked and unpacked; the server is on this machine."""

import http.server
import io
import os
import re
import threading
import zipfile

import numpy as np
import pytest

import etcmodel
from etcmodel import checkpoints
from etcmodel.checkpoints import writing
from etcmodel.models import encoders
from etcmodel.tools import download

NAME = "etc_base_2x_pretrain"
CONFIG = etcmodel.EtcConfig(
    30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
)


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.asked.append((self.path, self.headers.get("Range")))
        if self.path != f"/etc/{NAME}.zip":
            self.send_error(404)
            return
        begin = 0
        if server.knows_ranges and (given := self.headers.get("Range")):
            begin = int(re.fullmatch(r"bytes=(\d+)-", given)[1])
        if begin >= len(server.content):
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(server.content) - begin))
        self.end_headers()
        self.wfile.write(server.content[begin : server.cut_at])


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        served.asked, served.content, served.cut_at, served.knows_ranges = [], zipped(), None, True
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def values():
    encoder = encoders.build_encoder(CONFIG)
    named = checkpoints.release_names(encoder).items()
    return {name: np.random.default_rng(0).normal(size=x.shape) for name, x in named}


def zipped(leave_out=()):
    """The bytes of a zip like the authors': a folder with checkpoint and config."""
    found = {name: x.astype("float32") for name, x in values().items() if name not in leave_out}
    path = writing.write(found, f"made{len(leave_out)}", "released", config=CONFIG)
    folder, memory = os.path.dirname(path), io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(os.listdir(folder)):
            archive.write(os.path.join(folder, name), f"{NAME}/{name}")
    return memory.getvalue()


def run(server, **options):
    mirror = f"http://127.0.0.1:{server.server_port}/etc"
    download.run(download.DownloadOptions(name=NAME, mirror=mirror, **options))


def left():
    return sorted(x for x in os.listdir() if not x.startswith("made"))


def test_the_folder_is_a_model(server, capsys):
    run(server)
    model = etcmodel.from_pretrained(NAME)
    for name, variable in checkpoints.release_names(model).items():
        np.testing.assert_array_equal(variable, values()[name].astype("float32"))
    assert left() == [NAME]
    output = capsys.readouterr()
    assert re.search(r"^0 of 0 MB, [\d.]+ MB/s, 0s left$", output.err, re.M)
    assert output.out == (
        f"{NAME}: load it by etcmodel.from_pretrained('{NAME}'), or --init_checkpoint.\n"
    )
    with pytest.raises(ValueError, match=f"'{NAME}' is there already. Choose another --output"):
        run(server)


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_download_that_was_cut_goes_on(server, knows_ranges):
    server.cut_at, server.knows_ranges = 1000, knows_ranges
    with pytest.raises(ValueError, match=r"1000 of \d+ bytes came.*Run this again: it goes on"):
        run(server, output_dir="models/etc")
    assert os.listdir("models") == [f"etc.{NAME}.zip.part"]
    server.cut_at = None
    run(server, output_dir="models/etc")
    assert server.asked[-1] == (f"/etc/{NAME}.zip", "bytes=1000-")
    assert os.listdir("models") == ["etc"]
    etcmodel.from_pretrained("models/etc")


def test_a_whole_zip_of_an_earlier_try_is_taken(server):
    with open(f"{NAME}.{NAME}.zip.part", "wb") as file:
        file.write(server.content)
    run(server)
    assert left() == [NAME]


def test_what_is_damaged_or_no_checkpoint_is_never_there(server):
    whole = server.content
    server.content = whole[:2000] + bytes(20) + whole[2020:]
    with pytest.raises(ValueError, match="is no whole zip .*Run this again"):
        run(server)
    assert left() == []
    server.content = zipped([name for name in values() if name.endswith("layer_norm/gamma")][:1])
    with pytest.raises(ValueError, match="holds no checkpoint that can be loaded: .*layer_norm"):
        run(server)
    assert left() == [f"{NAME}.{NAME}.zip.part"]


def test_what_the_server_answers_is_told(server):
    mirror = f"http://127.0.0.1:{server.server_port}/other"
    with pytest.raises(ValueError, match=rf"^{mirror}/{NAME}.zip: the server answers 404, Not Fo"):
        download.run(download.DownloadOptions(name=NAME, mirror=mirror))
    with pytest.raises(ValueError, match="could not be downloaded .*refused"):
        download.run(download.DownloadOptions(name=NAME, mirror="http://127.0.0.1:9"))
    with pytest.raises(ValueError, match="--mirror must begin with http"):
        download.DownloadOptions(name=NAME, mirror="ftp://example.org")


def test_a_full_disk_keeps_what_came(server, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "extractall", fail)
        with pytest.raises(ValueError, match="zip.part could not be unpacked .*No space left"):
            run(server)
    assert left() == [f"{NAME}.{NAME}.zip.part"]
    run(server)
    assert left() == [NAME]
