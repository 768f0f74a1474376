"""Names that stand in for protected text: training teaches a model to copy them, and the export tries them first."""

from typing import Final

STAND_INS: Final = (
    "Tom",
    "Maria",
    "Mary",
    "Anna",
    "Boston",
    "London",
    "Paris",
    "Berlin",
    "Martin",
    "Laura",
    "Alex",
    "Paul",
    "Jane",
    "Kyoto",
    "Chicago",
    "Texas",
)
MOST: Final = 8  # per model
