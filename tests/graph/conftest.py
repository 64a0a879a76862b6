"""Settings of the tests of graphs."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_bundles(monkeypatch):
    """Provoked errors leave no files behind, so that their texts are not extended."""
    monkeypatch.setenv("LAMELLA_BUNDLES", "off")
