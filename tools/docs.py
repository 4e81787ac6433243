"""Serves the documentation site, rebuilt whenever a page or docstring changes; or only builds it.

The pages are part of a checkout, not of the installed package.
"""

import dataclasses
import importlib.util
import os
import pathlib
import subprocess
import sys

import etcmodel
from etcmodel.options import Options, option, run_program

__all__ = ["DocsOptions"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocsOptions(Options):
    """The address or the folder of the site."""

    address: str = option("127.0.0.1:8000", "Host and port to serve the site at.")
    output_dir: str = option("", "Folder to write the site to, instead of serving it.")


def site_config():
    """The path of the site's settings in the checkout that is imported.

    Raises:
        ValueError: naming the folder, if it is not a checkout, or if the site generator is missing.
    """
    root = pathlib.Path(etcmodel.__file__).parents[1]
    path = root / "docs" / "site" / "mkdocs.yml"
    if not path.exists():
        raise ValueError(
            f"The documentation is in the checkout, and {str(root)!r} is none. Run this from one, "
            "or read its docs folder."
        )
    if importlib.util.find_spec("mkdocs") is None:
        raise ValueError("MkDocs builds the site: pip install -r requirements-dev.txt")
    return path


def main(options):
    """Serves the site until it is stopped, or writes it."""
    path = site_config()
    to_do = ["serve", "--strict", "--dev-addr", options.address]
    if options.output_dir:
        to_do = ["build", "--strict", "--site-dir", os.path.abspath(options.output_dir)]
    # A relative path: MkDocs rejects a `docs_dir` that it recognizes as the folder of its settings.
    command = [sys.executable, "-m", "mkdocs", *to_do, "-f", path.name]
    environment = {"NO_MKDOCS_2_WARNING": "1", **os.environ}
    try:
        sys.exit(subprocess.run(command, cwd=path.parent, env=environment, check=False).returncode)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run_program(DocsOptions, main)
