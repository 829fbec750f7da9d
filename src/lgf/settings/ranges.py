"""Types of settings with ranges of values, checked when settings and recipes are read."""

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(ge=1)]
Tally = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
