"""Types of settings with the range of their values, which the readers of settings and recipes check."""

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(ge=1)]
Tally = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
