"""The notebooks of the documentation: pairs of a page in Markdown and a file with real outputs.

python -m tests.notebooks NAME…    runs notebooks and writes their files anew from their pages
"""

import copy
import json
import os
import pathlib
import sys
import tempfile

import jupyter_client
import jupytext
import nbclient
import nbformat

from tests import page

FOLDER = page.DOCS / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.md"))
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
_TIMEOUT = 300  # Seconds for a cell.


def page_of(name):
    """The notebook that a page in Markdown is, without outputs."""
    notebook = jupytext.read(FOLDER / f"{name}.md")
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    notebook.metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
    return notebook


def file_of(name):
    """The notebook's file, with outputs."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def is_installing(cell):
    """Whether a cell installs the library, which the tests leave out."""
    return cell.cell_type == "code" and cell.source.startswith("%pip ")


def run(name, folder, **variables):
    """Runs all cells but the installing ones, in a kernel with this Python.

    The kernel listens on sockets in a temporary folder, on no port.

    Args:
        name: str. Of the notebook.
        folder: path. Where it runs.
        **variables: str. Of its environment.
    Returns:
        The notebook of the page, with the outputs of the run.
    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
    """
    notebook = page_of(name)
    running = copy.copy(notebook)
    running.cells = [cell for cell in notebook.cells if not is_installing(cell)]
    with tempfile.TemporaryDirectory() as scratch:
        client = nbclient.NotebookClient(
            running,
            _kernel_manager(pathlib.Path(scratch)),
            timeout=_TIMEOUT,
            startup_timeout=_TIMEOUT,
            coalesce_streams=True,
            record_timing=False,
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute(cleanup_kc=True, env={**environment(), "IPYTHONDIR": scratch, **variables})
    for cell in running.cells:
        if cell.cell_type == "code":
            cell.outputs = [x for x in cell.outputs if not _is_of_the_library(x)]
    notebook.metadata = page_of(name).metadata
    return notebook


def _is_of_the_library(output):
    """Whether it is only what the library warns of; what TensorFlow would tell stays."""
    return output.get("name") == "stderr" and all(
        line.startswith("WARNING:absl:") for line in output["text"].splitlines()
    )


def environment():
    """That of a program that is to behave the same on every machine: dict."""
    programs = os.path.dirname(sys.executable)
    return {
        **{k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"},
        "PATH": f"{programs}:{os.environ['PATH']}",
        "MPLBACKEND": "agg",
    }


def _kernel_manager(scratch):
    specification = scratch / "kernels" / _KERNEL["name"]
    specification.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    made = {"argv": command, "display_name": "Python 3", "language": "python"}
    (specification / "kernel.json").write_text(json.dumps(made), encoding="utf-8")
    return jupyter_client.AsyncKernelManager(
        kernel_name=_KERNEL["name"],
        kernel_spec_manager=jupyter_client.kernelspec.KernelSpecManager(
            kernel_dirs=[str(scratch / "kernels")]
        ),
        connection_file=str(scratch / "connection.json"),
        transport="ipc",
        ip=str(scratch / "socket"),
    )


def shown(notebook):
    """What each code cell shows: list of lists of text, or of the kinds of a picture or page."""
    return [
        [
            x.text
            if x.output_type == "stream"
            else x.data.get("text/plain", "") + str(sorted(x.data))
            for x in cell.outputs
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def main(names):
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(run(name, folder), FOLDER / f"{name}.ipynb")


if __name__ == "__main__":
    main(sys.argv[1:])
