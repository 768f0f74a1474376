"""Folders of small tokenizers, as functions that write them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import hugging_face_files


@pytest.fixture(scope="session")
def english_and_german() -> tuple[list[str], list[str]]:
    return hugging_face_files.sentences()


@pytest.fixture(scope="session")
def marian_folder() -> Callable[..., Path]:
    return hugging_face_files.marian_files


@pytest.fixture(scope="session")
def fairseq_folder() -> Callable[..., Path]:
    return hugging_face_files.fairseq_files
