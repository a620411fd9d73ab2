from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.runners.kit import Place, place_on_disk


@pytest.fixture
def place() -> Iterator[Place]:
    with place_on_disk() as place:
        yield place
