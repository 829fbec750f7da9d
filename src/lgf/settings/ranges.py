"""Types of fields with ranges of values, checked when settings, recipes and runs are read."""

from typing import Annotated, Any

import numpy as np
from pydantic import Field, PlainSerializer, PlainValidator

Count = Annotated[int, Field(ge=1)]
Tally = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _array(values: Any) -> np.ndarray:
    try:
        return np.array(values, dtype=object).astype(float)  # numbers may be written as text: "NaN"
    except (TypeError, OverflowError) as error:
        raise ValueError("not an array of numbers") from error


Array = Annotated[np.ndarray, PlainValidator(_array), PlainSerializer(np.ndarray.tolist)]
