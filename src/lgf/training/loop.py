"""The training loop: epochs, schedule, early stopping, checkpoints for exact resumption."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from lgf.training.muon import Muon
from lgf.training.progress import Progress
from lgf.training.recipe import TrainingRecipe

OPTIMISERS = {"adam": torch.optim.AdamW, "muon": Muon}
LARGEST_GRADIENT = 0.5
DIVERGED = 2.0  # times the least validation loss, or half of its fall in orders of magnitude lost again


@dataclass
class _State:
    """The part of a checkpoint besides weights and the optimiser's moments."""

    epoch: int = 0
    first: float = math.inf
    best: float = math.inf
    waited: int = 0
    rate: float = 1.0


def fit(
    model: nn.Module,
    loss: Callable[[Tensor], Tensor],
    n_train: int,
    n_held_out: int,
    settings: TrainingRecipe,
    seed: int,
    stage: str,
    checkpoint: Path | None = None,
    exact: Callable[[], float] | None = None,
    progress: Callable[[Progress], None] | None = None,
    patience: int | None = None,
) -> float:
    """The least validation loss; `model` is trained in place and left with the weights that reach it.

    `loss` takes row numbers; rows n_train .. n_train + n_held_out - 1 validate. Each epoch has its own random
    generator, seeded by seed and epoch, so a training resumed from its `checkpoint` gives the same result. After an
    epoch that diverges the training goes on from its best weights, at half the learning rate. It ends early after
    `patience` epochs without a smaller validation loss.
    """
    kind = OPTIMISERS[settings.optimiser]
    optimiser = kind(model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    best = {name: value.clone() for name, value in model.state_dict().items()}
    state = _State()
    if checkpoint is not None and checkpoint.is_file():
        state = _restore(checkpoint, model, optimiser, best)
    started, first = time.monotonic(), state.epoch
    held_out = torch.arange(n_train, n_train + n_held_out)
    while state.epoch < settings.epochs and (patience is None or state.waited < patience):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed * 1_000_003 + state.epoch)
            train_loss = _epoch(model, loss, optimiser, torch.randperm(n_train), settings, state)
            # The same noise in every epoch makes validation losses comparable.
            torch.manual_seed(seed)
            validation = _validate(model, loss, held_out, settings.batch)
        state.epoch += 1
        state.waited += 1
        if validation < state.best:
            state.best, state.waited = validation, 0
            for name, value in model.state_dict().items():
                best[name].copy_(value)
        if state.epoch == 1:
            state.first = validation
        # "not <=", because it may not be a number
        if not validation <= max(DIVERGED * state.best, math.sqrt(state.first * state.best)):
            model.load_state_dict(best)
            optimiser.state.clear()
            state.rate /= 2
        if checkpoint is not None:
            _save(checkpoint, model, optimiser, best, state)
        if progress is not None:
            left = (time.monotonic() - started) / (state.epoch - first) * (settings.epochs - state.epoch)
            share = None if exact is None else exact()
            progress(Progress(stage, state.epoch, settings.epochs, train_loss, validation, share, left))
    model.load_state_dict(best)
    model.eval()
    return state.best


def _epoch(
    model: nn.Module,
    loss: Callable[[Tensor], Tensor],
    optimiser: torch.optim.Optimizer,
    rows: Tensor,
    settings: TrainingRecipe,
    state: _State,
) -> float:
    model.train()
    batches = rows.split(settings.batch)
    total = 0.0
    for i, batch in enumerate(batches):
        done = (state.epoch + i / len(batches)) / settings.epochs
        for group in optimiser.param_groups:
            group["lr"] = settings.learning_rate * state.rate * _rate_factor(done)
        value = loss(batch)
        optimiser.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), LARGEST_GRADIENT)
        optimiser.step()
        total += value.item() * len(batch)
    return total / len(rows)


def _rate_factor(done: float) -> float:
    """The factor of the learning rate at progress `done`: a cosine that warms up for the first 5 %."""
    return min(20 * done + 0.01, 0.5 * (1 + math.cos(math.pi * done)))


@torch.no_grad()
def _validate(model: nn.Module, loss: Callable[[Tensor], Tensor], rows: Tensor, batch: int) -> float:
    model.eval()
    return sum(loss(part).item() * len(part) for part in rows.split(batch)) / len(rows)


def _save(
    path: Path, model: nn.Module, optimiser: torch.optim.Optimizer, best: dict[str, Tensor], state: _State
) -> None:
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    for number, moments in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{number}.{name}": value for name, value in moments.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written to a second file and renamed, so an interruption leaves the previous checkpoint intact.
    part = path.with_suffix(".part")
    save_file({name: value.contiguous() for name, value in tensors.items()}, part, {"state": json.dumps(asdict(state))})
    part.replace(path)


def _restore(path: Path, model: nn.Module, optimiser: torch.optim.Optimizer, best: dict[str, Tensor]) -> _State:
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        state = _State(**json.loads(file.metadata()["state"]))
    model.load_state_dict({name: tensors[f"model.{name}"] for name in best})
    for name in best:
        best[name] = tensors[f"best.{name}"]
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        kind, rest = name.split(".", 1)
        if kind == "optimiser":
            number, key = rest.split(".", 1)
            moments.setdefault(int(number), {})[key] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
    return state
