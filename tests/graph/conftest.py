"""Settings of the tests of graphs."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_bundles(monkeypatch):
    """Errors that are made on purpose leave nothing behind, and their texts are their own."""
    monkeypatch.setenv("LAMELLA_BUNDLES", "off")
