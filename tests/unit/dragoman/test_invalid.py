from typing import Self

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dragoman.invalid import describe


class Lid(BaseModel):
    is_open: bool


class Box(BaseModel):
    model_config = ConfigDict(extra="forbid")

    lid: Lid | None = None
    width: int = Field(gt=0)
    height: int = Field(gt=0)
    label: str = Field(default="", max_length=3)

    @model_validator(mode="after")
    def _is_flat(self) -> Self:
        if self.height > self.width:
            raise ValueError("height must be at most width")
        return self


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"width": 0, "height": 1}, "width: must be greater than 0, not 0"),
        (
            {"width": 0, "height": "x"},
            "width: must be greater than 0, not 0; height: must be a valid integer, not 'x'",
        ),
        ({"width": 1, "height": 1, "label": "wide"}, "label: must have at most 3 characters, not 'wide'"),
        ({"width": 1, "height": 1, "depth": 1}, "depth: is no known field"),
        ({"width": 1, "height": 1, "lid": 5}, "lid: must have named fields, not 5"),
        ({"width": 1, "height": 1, "lid": {"is_open": "maybe"}}, "lid.is_open: must be true or false, not 'maybe'"),
        ({"width": 1}, "height: Field required"),
        ({"width": 1, "height": 2}, "height must be at most width"),
    ],
)
def test_describe(fields: dict[str, object], expected: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Box(**fields)
    assert describe(caught.value) == expected
