r"""The atlas: measured depth of every family of fbam/sequence, in each of its forms (paper, section 2).

A family is a layer; its forms are programs for the same function, so the smallest of their depths is the best upper bound known
here. Forms that loop over positions are measured at short lengths, forms that do not at long ones; each law is fitted to at least
four of them. The paper's own model stands in the same table, over the number of frames L, and its frame head over the
steps of the reduction LSTM, of which a frame of N_f cells makes

$$N_f / 2^P$$
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import torch
from torch import Tensor, nn

from fbam.models.action_model import ActionModel, ModelConfig
from fbam.sequence.families import CHUNK, FAMILIES, build, forms_of, run_form
from fbam.theory.cost import CostModel
from fbam.theory.depth import TrueDepth, true_depths

MODELS = (CostModel("unbounded", "tree"), CostModel(2, "tree"))
LOOPING = frozenset({"serial", "recurrent"})
"""Forms that take one position, or segment, after the other."""
EXACT_AFTER_N = frozenset({"latent_recurrent"})
"""Families whose iteration takes n rounds whatever the values are, so that short lengths show its law."""
DEAR = {"latent_recurrent": 5, "looped": 4, "feedback": 4, "rwkv7": 3, "deltaproduct": 2, "recurrent_memory": 2, "gateloop": 2, "mlstm": 2}
"""Families that take several times as long to measure as the others."""


def measure_cell(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """`measure_family` where a family is named, `measure_action_model` otherwise: one grid for both."""
    return (measure_family if "family" in config else measure_action_model)(config, folder, tick)


def cost(config: dict) -> float:
    """What a cell costs, in units of an ordinary family; the paper's model is the dearest."""
    return DEAR.get(config["family"], 1) if "family" in config else 10


def measure_family(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Measure all forms of one family: a grid cell.

    :param config: family, width, short (lengths for forms that loop), long (lengths for all others), seed
    :returns: for each form its lengths, its depths by cost model and direction, positions a chunk, assumptions; CPU seconds
    """
    start, family = process_time(), config["family"]
    torch.set_num_threads(1)
    torch.manual_seed(config["seed"])
    module = build(family, config["width"])
    forms = forms_of(FAMILIES[family])
    measured = []
    for position, form in enumerate(forms):
        run = lambda x, form=form: run_form(module, form, x)  # noqa: E731
        chunk = CHUNK if form == "chunked" else getattr(module, "segment", None)
        lengths = _lengths(config, form, chunk)
        measured.append({"form": form, "chunk": chunk, **measure(run, lengths, lambda n: torch.randn(1, n, config["width"], requires_grad=True))})
        tick((position + 1) / len(forms))
    x = torch.randn(2, max(config["short"]), config["width"])
    return {"forms": measured, "agree": _agree(module, forms, x)}, {"cpu_seconds": process_time() - start}


def _lengths(config: dict, form: str, chunk: int | None) -> list[int]:
    """The long lengths, or for a loop the short ones; whole segments for a loop over them, half of the long lengths for iterations
    whose rounds depend on the values."""
    if form == "iterated":
        return config["short"] if config["family"] in EXACT_AFTER_N else [n // 2 for n in config["long"]]
    if form not in LOOPING:
        return config["long"]
    return [n * chunk // min(config["short"]) for n in config["short"]] if chunk else config["short"]


def measure(run: Callable[[Any], Any], lengths: Sequence[int], make_input: Callable[[int], Any]) -> dict[str, Any]:
    """Depths of a program at several lengths: `depths[cost model][direction]` is a list in the order of the lengths."""
    found = [true_depths(run, make_input(n), models=MODELS) for n in lengths]
    return {"lengths": list(lengths), "depths": _by_model(found), "assumptions": list(found[-1][0].assumptions)}


def _by_model(found: Sequence[Sequence[TrueDepth]]) -> dict[str, dict[str, list[int]]]:
    """`found[length][cost model]` turned around, forward and backward apart."""
    return {model.name: {"forward": [at[k].depth for at in found], "backward": [at[k].backward_depth for at in found]}
            for k, model in enumerate(MODELS)}


@torch.no_grad()
def _agree(module: nn.Module, forms: Sequence[str], x: Tensor) -> bool:
    """Whether all forms compute the same function on one input, to single precision."""
    first, *others = (run_form(module, form, x) for form in forms)
    return all(torch.allclose(first, other, rtol=1e-3, atol=1e-3) for other in others)


def tiny_model(cells: int, poolings: int, width: int) -> ActionModel:
    """The paper's model with one block after the poolings and two layers, small enough to measure."""
    return ActionModel(ModelConfig(rows=1, cols=cells, vocab_size=8, codes=8, width=width, heads=1, poolings=poolings, head_blocks=1, layers=2))


def measure_action_model(config: dict, folder: Path, tick: Callable[[float], None]) -> tuple[dict, dict]:
    """Measure the paper's model over L frames, and its frame head over the cells of one frame: a grid cell.

    :param config: width, poolings P, cells (of the frame while L varies), short (lengths L), steps (of the reduction LSTM),
        full_cells (a frame whose head is measured at full size), seed
    """
    start, P = process_time(), config["poolings"]
    torch.manual_seed(config["seed"])
    model = tiny_model(config["cells"], P, config["width"])
    whole = measure(lambda code: model(code, code, code, code % 8), config["short"], lambda n: torch.randint(8, (1, n, config["cells"])))
    tick(0.3)

    def head_of(steps: int) -> Callable[[Tensor], Tensor]:
        head = tiny_model(steps * 2**P, P, config["width"]).head
        return lambda code: head(code, code, code, code % 8)

    heads = [true_depths(head_of(n), torch.randint(8, (1, n * 2**P)), models=MODELS) for n in config["steps"]]
    depths = _by_model(heads)
    tick(0.6)
    full = measure_full_head(config["full_cells"], P, config["width"])
    rows = [{"form": "serial", "chunk": None, **whole},
            {"form": "frame head, over its reduction steps", "chunk": None, "lengths": config["steps"], "depths": depths, "assumptions": []}]
    return {"forms": rows, "full": full, "full_steps": config["full_cells"] // 2**P}, {"cpu_seconds": process_time() - start}


def measure_full_head(cells: int, poolings: int, width: int) -> dict[str, int]:
    """Forward depth of the frame head on a frame of full size, by cost model."""
    head, code = tiny_model(cells, poolings, width).head, torch.zeros(1, cells, dtype=torch.int64)
    with torch.no_grad():
        found = true_depths(lambda code: head(code, code, code, code), code, models=MODELS, backward=False)
    return {at.model.name: at.depth for at in found}
