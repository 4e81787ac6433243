"""Without a checkout, or without what builds the site, a line says so; the site is in test_site."""

import importlib.util

import pytest

from etcmodel.tools import docs


def test_the_settings_are_those_of_the_checkout():
    assert docs.site_config().read_text(encoding="utf-8").splitlines()[1] == "site_name: etcmodel"


def test_an_installed_package_has_no_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(docs.etcmodel, "__file__", str(tmp_path / "etcmodel" / "__init__.py"))
    with pytest.raises(ValueError, match="in the checkout, and .* is none"):
        docs.site_config()


def test_what_builds_the_site_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match="MkDocs builds the site: pip install -r"):
        docs.site_config()
