"""An optimizer around any torch optimizer that trains one block of a model at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from scgd.checks import flag
from scgd.torch.arguments import as_patterns, finds
from scgd.torch.blocks.checks import (
    check_arguments,
    check_choice_of,
    check_complete,
    check_costs,
    check_groups,
    check_in_backward,
    check_inner,
    check_rates,
    check_saved,
    try_inner,
)
from scgd.torch.blocks.hold import give_back, held
from scgd.torch.blocks.inner import COPY, Inner, move
from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.meter import Meter, values
from scgd.torch.blocks.partition import Cut, count_costs, divide
from scgd.torch.blocks.picture import draw_probabilities
from scgd.torch.blocks.policies import find_policy
from scgd.torch.blocks.visits import MEMORY, Visits
from scgd.torch.blocks.watch import Sight
from scgd.torch.distributed import Ranks, narrow


class BlockOptimizer(Visits):
    r"""Train one block of a model at a time with any torch optimizer.

    Only the parameters of the active block require gradients: backward stops at the lowest of
    them, and gradients and the inner optimizer's state exist for them alone. After ``period`` steps
    a policy chooses the next block. A switch happens inside :meth:`step`, hence only between
    accumulation steps.

    Parameters
    ----------
    model
        The model, or a ``DistributedDataParallel`` around it (:meth:`attach` one made later).
        Parameters that require no gradient now stay frozen.
    inner
        An optimizer class, or a function that makes one from parameter groups.
    blocks
        ``"module"``: every module that owns parameters; ``"layer"``: every member of the model's
        lists of layers, and each part outside them; ``"tensor"``: every parameter; a mapping of
        block names to regular expressions, or a function from a parameter's name to its block's
        (``None``: frozen). An expression must match whole parts of a dotted name.
    period
        Steps of a visit; ten were best in fine-tuning.
    policy
        ``"musketeer"``, ``"inverse-cost"``, ``"cyclic"``, ``"shuffled"``, ``"uniform"``, ``"top"``,
        ``"top-down"``, ``"misa"``, or an object of their classes.
    always, never, first
        Regular expressions of parameters that always train, that never do, and of blocks to visit
        first (a head that starts at random).
    active
        Blocks trained at the same time. Six modules hold about as much as one layer of a
        transformer, and were better than the layer.
    keep_state
        ``False``: the inner state of a block is freed when the block is left; ``"cpu"``: it is kept
        in CPU memory.
    cost
        What a step on each block costs: ``"count"`` counts multiplications, ``"time"`` measures
        seconds in the first visits (then two runs of a seed may differ), or numbers by block name.
    groups
        Other settings by regular expression, for instance ``{"bias|norm": {"weight_decay": 0.0}}``.
    warmup
        Steps at the beginning of a visit over which the rate of its blocks grows from zero.
    importance
        ``"relative"`` multiplies the rate of a block by 1 / (B p). Optimizers of Adam's kind cancel
        factors of the gradient, so the factor acts on the rate.
    fp32_copy
        Whether bfloat16 and float16 parameters are trained through a float32 copy, which exists
        for the active block only.
    in_backward
        Step on each parameter as soon as backward has its gradient, and free that: with
        ``inner=torch.optim.Adafactor`` gradients and state of a block take a few MB. One backward
        per step: no accumulation, no clipping of the norm of all gradients, no GradScaler, no DDP.
    seed
        Seed of the draws, agreed on by all processes; ``None`` takes one from the operating system.
    **settings
        What the inner optimizer is called with (``lr``, ``weight_decay`` ...).

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from scgd.torch import BlockOptimizer
    >>> _ = torch.manual_seed(0)
    >>> layers = [nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)]
    >>> model = nn.Sequential(*layers)
    >>> optimizer = BlockOptimizer(model, period=5, policy="cyclic", active=1, lr=0.01)
    >>> list(optimizer.blocks)
    ['0', '2', '4']
    >>> x = torch.randn(32, 4)
    >>> for step in range(20):
    ...     optimizer.zero_grad()
    ...     loss = (model(x) - x[:, :1]).square().mean()
    ...     loss.backward()
    ...     optimizer.step()
    >>> optimizer.active_blocks  # from the top down, and again
    ['2']
    >>> [p.requires_grad for p in model.parameters()]
    [False, False, True, True, False, False]
    """

    def __init__(
        self,
        model: nn.Module,
        inner: Callable[..., torch.optim.Optimizer] = torch.optim.AdamW,
        blocks: Cut = "module",
        period: int = 10,
        policy: Any = "musketeer",
        *,
        always: Iterable[str] = (),
        never: Iterable[str] = (),
        first: Iterable[str] = (),
        active: int = 6,
        keep_state: bool | str = False,
        cost: Mapping[str, float] | str = "count",
        groups: Mapping[str, Mapping[str, Any]] | None = None,
        warmup: int = 0,
        importance: str | None = None,
        fp32_copy: bool = True,
        in_backward: bool = False,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        check_arguments(model, period, active, keep_state, warmup, importance, seed)
        flag(fp32_copy, "fp32_copy")
        flag(in_backward, "in_backward")
        check_inner(inner)
        own = check_groups(groups)
        self.policy = find_policy(policy)
        check_in_backward(in_backward, model, self.policy)
        self.wrapper = model if isinstance(model, DistributedDataParallel) else None
        self.model: Any = model if self.wrapper is None else self.wrapper.module
        self.period, self.n_active, self.keep_state = int(period), int(active), keep_state
        self.warmup, self.importance = int(warmup), importance
        self.ranks = Ranks(None if self.wrapper is None else self.wrapper.process_group)
        frozen = {p for p in self.model.parameters() if not p.requires_grad} - held(self.model)
        parts = divide(self.model, blocks, always, never, frozen)
        fresh = np.random.SeedSequence().generate_state(1, np.uint64)
        number = fresh if seed is None else np.array([seed], np.uint64)
        sizes = [sum(parts.params[n].numel() for n in names) for names in parts.blocks.values()]
        book = Ledger(tuple(parts.blocks), np.array(sizes), 0)
        book.first = parts.pick("first", as_patterns("first", first))
        if isinstance(cost, str):
            check_choice_of("cost", cost, ("count", "time"))
            book.costs = count_costs(self.model, parts) if cost == "count" else book.costs
        else:
            book.costs = check_costs(cost, book.names)
        outer = outer_groups(parts.params, list(parts.names()), own)
        defaults = try_inner(inner, settings, parts.members(), own)
        check_rates(warmup, importance, [{**defaults, **group} for group in outer])
        self.book, self.parts, self.meter = book, parts, Meter()
        self.inner = Inner(inner, settings, fp32_copy, in_backward)
        self.probe = None
        self.frozen = set()
        self.seen, self.factor = Sight(), 1.0
        self.input_hooks = []
        super().__init__(outer, dict(defaults))
        book.seed = int(self.ranks.agree(number)[0])
        self._take_hold()
        try:
            self._visit()
        except BaseException:  # a policy of the user's own
            self.release()
            raise
        self.is_ready = True

    # Blocks and probabilities as users see them

    @property
    def blocks(self) -> dict[str, list[str]]:
        """The names of the parameters of each block, from the bottom of the model to the top."""
        return {name: list(params) for name, params in self.parts.blocks.items()}

    @property
    def history(self) -> list[dict[str, Any]]:
        """The visits so far: number, blocks and their probabilities; thinned when long."""
        names = self.book.names
        return [{**r, "blocks": [names[b] for b in r["blocks"]]} for r in self.book.history]

    def probabilities(self) -> dict[str, float]:
        """Return the probability of each block at the next draw.

        While blocks wait for their first visit, or a deadline is due, those go first whatever
        their probabilities.
        """
        weights = self.policy.weights(self.book)
        return {name: float(w) for name, w in zip(self.book.names, weights, strict=True)}

    def picture(self, path: Any) -> None:
        """Write a picture of probabilities and visits over the run; the suffix says the format."""
        draw_probabilities(self.book, path)

    # Training

    def tell(self, loss: Tensor | float) -> None:
        """Tell the loss of this step, for policies that look at it; call it before :meth:`step`."""
        if isinstance(loss, Tensor):
            self.meter.losses.append(loss.detach().mean())
        elif isinstance(loss, int | float | np.number):
            self.meter.losses.append(float(loss))
        else:
            raise TypeError(
                f"loss must be a number or a tensor, got {loss!r}; tell, or return from the "
                "closure, what backward was called on"
            )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the active block; after the last step of a visit choose the next one.

        A closure is called once, to compute the loss and its gradients.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            if loss is not None:  # Lightning's, when a training step is passed over
                self.tell(loss)
        if self._is_rehearsal():
            self.inner.rehearse(self.state)
            return loss
        if self.policy.needs_loss and not self.meter.losses:
            raise RuntimeError(
                f"the policy {self.policy!r} looks at the loss: call optimizer.tell(loss) before "
                "optimizer.step(), or give step a closure that returns it"
            )
        self._close_probe()
        self.follow_freezing()
        if not self._note_gradients():
            return loss  # as torch's own: without gradients nothing happens
        self.inner.step()
        if not self.inner.in_backward:
            self.inner.link(self.state)
        self._measure()
        self.meter.tick()
        if self._is_over():
            self._end_visit()
            self._visit()
        else:
            self._set_factor()
        return loss

    def attach(self, model: DistributedDataParallel) -> None:
        """Make a DDP wrapper reduce the gradients of the active block only.

        Needed when the wrapper was made after the optimizer (as trainers do).
        """
        if not isinstance(model, DistributedDataParallel) or model.module is not self.model:
            raise ValueError("attach takes a DistributedDataParallel around the optimizer's model")
        check_in_backward(self.inner.in_backward, model, self.policy)
        self.wrapper, self.ranks = model, Ranks(model.process_group)
        self._drop_probe()
        narrow(model)
        if self.meter.steps == 0 and self.policy.probes(self.book):
            self._open_probe()

    def release(self) -> None:
        """Give the model back: all parameters require gradients as before, hooks are removed."""
        self._drop_probe()
        self.inner.unhook()
        for hook in (self.watch_hook, *self.input_hooks):
            hook.remove()
        give_back(self.model)

    # State

    def _is_rehearsal(self) -> bool:
        """Whether this is torch.distributed.checkpoint's way to create state: no rate, no gradient.

        Such a step is not counted.
        """
        rates = [group.get("lr") for group in self.param_groups]
        if len(self.state) or any(rate is None or float(rate) != 0 for rate in rates):
            return False
        grads = [p.grad for p, _ in self.inner.pairs]
        return not any(g is None or values(g).any() for g in grads)

    def position(self) -> str:
        """Return where the run is, as one line of text: blocks, visits, measurements."""
        numbers = self._numbers()
        place = {
            "policy": repr(self.policy),
            "ledger": self.book.to_dict(),
            "meter": self.meter.state(),
            "factor": self.factor,
            "stateful": [i for p, i in numbers.items() if self.state.get(p)],
            "dtypes": {i: str(self.inner.worker_dtype(p)) for p, i in numbers.items()},
            "counters": [[*source, kept] for source, kept in self.inner.counters.items()],
        }
        return json.dumps(place)

    def seek(self, position: str) -> None:
        """Go to a position, with an inner state that is there but new.

        ``torch.distributed.checkpoint`` fills tensors that exist: load the position first, seek it,
        then load into ``state_dict()``. ``load_state_dict`` alone needs no such preparation.
        """
        place = check_saved(position, self.policy, self.book)
        if self.keep_state:
            for b in np.flatnonzero(place["ledger"]["counts"]):
                self._activate([int(b)], force=True)
                self.inner.rehearse(self.state)
        self._go(place)
        self.inner.rehearse(self.state)

    def _go(self, place: dict[str, Any]) -> None:
        self._drop_probe()
        self.book.restore(place["ledger"])
        self.meter, self.factor = self._meter(), place["factor"]
        self.meter.restore(place["meter"])
        self._activate(self.book.current, force=True)
        saved = place.get("counters", [])
        self.inner.counters = {(g, visiting): kept for g, visiting, kept in saved}
        self._set_factor()
        if self.meter.steps == 0 and self.policy.probes(self.book):
            self._open_probe()

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on bit for bit, also in the middle of a visit."""
        self.param_groups[0][MEMORY] = self.position()
        saved = super().state_dict()
        self.param_groups[0][MEMORY] = ""
        numbers = self._numbers()
        for p, copy in self.inner.copies.items():
            saved["state"][numbers[p]] = {**saved["state"].get(numbers[p], {}), COPY: copy}
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up a state of an optimizer with the same blocks and policy."""
        place = check_saved(state_dict["param_groups"][0].get(MEMORY), self.policy, self.book)
        check_complete(place, state_dict)
        super().load_state_dict(state_dict)
        self.param_groups[0][MEMORY] = ""
        # Loading has cast states to the precision of the parameters; take them as they were saved.
        numbers = [i for group in state_dict["param_groups"] for i in group["params"]]
        params = [p for group in self.param_groups for p in group["params"]]
        self.state.clear()
        self.inner.copies.clear()
        for i, p in zip(numbers, params, strict=True):
            dtype = place.get("dtypes", {}).get(str(i))
            self._take_state(p, state_dict["state"].get(i, {}), dtype)
        self._go(place)

    def _numbers(self) -> dict[Tensor, int]:
        """Return the number under which a saved state knows each parameter."""
        return {p: i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}

    def _take_state(self, p: Tensor, saved: Mapping[str, Any], dtype: str | None) -> None:
        """Take what was saved, cast if the parameter is trained in another precision by now."""
        own = {k: v.clone() if isinstance(v, Tensor) else v for k, v in saved.items()}
        if COPY in own:
            self.inner.copies[p] = own.pop(COPY).to(p.device, torch.float32)
        wanted = self.inner.worker_dtype(p)
        if dtype not in (None, str(wanted)):
            for name, v in own.items():
                if isinstance(v, Tensor) and v.dim() > 0 and str(v.dtype) == dtype:
                    own[name] = v.to(wanted)
        if own:
            self.state[p] = move(own, p.device)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a BlockOptimizer holds its model and cannot be copied or pickled; save state_dict()"
        )


def outer_groups(
    params: Mapping[str, Tensor], names: list[str], settings: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return parameter groups: one per pattern of settings, and the rest first."""
    rows: list[dict[str, Any]] = [{"params": []}]
    rows += [{**own, "params": []} for own in settings.values()]
    patterns = [as_patterns("groups", pattern)[0] for pattern in settings]
    for name in names:
        hits = [i for i, pattern in enumerate(patterns, start=1) if finds(pattern, name)]
        rows[hits[0] if hits else 0]["params"].append(params[name])
    for pattern, row in zip(patterns, rows[1:], strict=True):
        if not row["params"]:
            raise ValueError(f"groups[{pattern!r}] finds no parameter that is trained")
    return [row for row in rows if row["params"]]
