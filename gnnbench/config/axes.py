"""The axes of an experiment: descriptions and permitted values."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from gnnbench.config import messages
from gnnbench.core import fanouts, names
from gnnbench.core.cell import PHASES
from gnnbench.core.precision import PRECISIONS
from gnnbench.schema.definition_values import AxisType

Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(gt=0)]
Fanout = Annotated[int, AfterValidator(fanouts.check)]
Natural = Annotated[int, Field(ge=0)]

AXES: dict[str, AxisType] = {
    "system": Annotated[Name, Field(description="registered system")],
    "dataset": Annotated[Name, Field(description="dataset, with ~twin, @scale, +sym and +weights")],
    "model": Annotated[Name, Field(description="model; none where an epoch does not train")],
    "until": Annotated[Literal[PHASES], Field(description="how far an epoch goes")],
    "device": Annotated[
        Literal["cpu", "cuda", "auto"],
        Field(description="where it runs; auto: on the GPU if there is one"),
    ],
    "pick": Annotated[
        Name, Field(description="how all samplers pick neighbours; default: each its own")
    ],
    "frontier": Annotated[
        Literal["default", "cumulative", "new"],
        Field(description="nodes that a hop of all samplers expands; default: each its own"),
    ],
    "batch_size": Annotated[Positive, Field(description="seeds a batch")],
    "fanouts": Annotated[
        list[Fanout],
        Field(description="neighbours a node, from the seeds outwards; -1: all; []: no sampling"),
    ],
    "hidden": Annotated[Positive, Field(description="hidden width of the model")],
    "learning_rate": Annotated[float, Field(gt=0, description="of Adam")],
    "dropout": Annotated[
        float, Field(ge=0, lt=1, description="share of hidden values that training sets to 0")
    ],
    "precision": Annotated[
        Literal[PRECISIONS],
        Field(description="of the model's matrix products; tf32 needs a GPU"),
    ],
    "seed": Annotated[Natural, Field(description="of sampling, order and weights")],
    "threads": Annotated[
        Natural, Field(le=4096, description="of each worker; 0: all usable cores")
    ],
    "gpus": Annotated[
        Positive, Field(description="GPUs of a process; several train by schedule.ranks")
    ],
    "evaluate": Annotated[
        Literal["sampled", "all"],
        Field(description="neighbours over which the model is evaluated after each epoch"),
    ],
}
REQUIRED = ("system", "dataset")
# Permitted values of the axes that have few.
CHOICES: dict[str, tuple[str, ...]] = {
    axis: get_args(get_args(AXES[axis])[0])
    for axis in ("until", "device", "frontier", "precision", "evaluate")
}


@cache  # a definition checks its axes profile by profile
def _adapter(axis: str) -> TypeAdapter[object]:
    """Return the validator of an axis's values."""
    return TypeAdapter(AXES[axis])


def check_axis(axis: str, values: Iterable[object]) -> None:
    """Raise ``ValueError`` for an unknown axis, and for a value that it does not permit."""
    system, dot, path = axis.partition(".")
    if system == "options":
        raise ValueError(f"axis '{axis}' is to name whose it is: '<system>.<path>'")
    if dot and system and path:
        return
    if axis not in AXES:
        raise ValueError(f"unknown axis '{axis}'; {names.suggestion(axis, AXES)}")
    adapter = _adapter(axis)
    for value in values:
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError:
            schema = adapter.json_schema()
            right = messages.FANOUTS if axis == "fanouts" else messages.expected(schema)
            raise ValueError(messages.refusal(f"axis '{axis}'", value, right)) from None
