"""MUSKETEER: explore with fixed weights, then exploit the gains (section 4 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from scgd.checks import choice, flag, number, settle, whole
from scgd.policies.base import CompiledPolicy
from scgd.policies.distribution import make_distribution
from scgd.schedules import InverseLog, Schedule

CHOICES = {
    "gain": ("average", "absolute", "square"),
    "normalization": ("l1", "softmax"),
    "memory": ("phase", "run", "visits"),
}


@dataclass(frozen=True)
class Musketeer(CompiledPolicy):
    r"""Draw coordinates in proportion to the gains they have brought (Algorithm 1).

    During a phase of *T* draws the weights :math:`d_n` are fixed and the gains
    :math:`\tilde G_T = \frac1T \sum_t D_n^{-1} D(\zeta_{t+1})\, \psi(g_t)` are collected (Eqs. 5,
    6) with :math:`\psi(g) = g`, :math:`|g|` or :math:`g^2`. At its end the total gain
    :math:`G_{n+1} = G_n + (\tilde G_T - G_n)/(n+1)` gives the new weights

    .. math:: d_{n+1} = (1 - \lambda_n)\, \varphi(G_{n+1}) + \lambda_n / p ,

    with :math:`\varphi` the l1 or softmax normalisation (Eq. 7, with the gain just updated).

    Parameters
    ----------
    gain
        ``"average"`` (signed), ``"absolute"`` or ``"square"``.
    normalization
        ``"l1"`` (:math:`|G|/\sum|G|`) or ``"softmax"`` (:math:`\exp(\eta G)/\sum\exp(\eta G)`).
    sharpness
        :math:`\eta`, used by the softmax.
    mixing
        :math:`\lambda_n`, a number or a schedule of the phase number n = 1, 2, ...; it keeps every
        coordinate's probability at least :math:`\lambda_n/p`.
    length
        *T*; ``None`` is :math:`\lfloor\sqrt p\rfloor`.
    memory
        ``"phase"``: the paper's rule, the phase gain starts from zero in every phase. ``"run"``: it
        is never reset, as in the authors' zeroth-order code. ``"visits"``: the running mean of
        :math:`\psi(g)/d` over a coordinate's own visits, as in the authors' first-order code.
    rescale
        Divide the absolute total gain by its largest entry before normalising, as the authors'
        first-order code does.

    Notes
    -----
    Under noise the absolute and square gains do not vanish, so their weights do not tend to
    uniform; those of the average gain with softmax do (Theorem 5). An update costs O(T log p) with
    ``memory="phase"`` and O(p) with the options that follow the authors' code.

    Examples
    --------
    >>> Musketeer().phase_length(250)
    15
    """

    gain: Literal["average", "absolute", "square"] = "absolute"
    normalization: Literal["l1", "softmax"] = "l1"
    sharpness: float = 1.0
    mixing: float | Schedule = field(default_factory=InverseLog)
    length: int | None = None
    memory: Literal["phase", "run", "visits"] = "phase"
    rescale: bool = False

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            choice(getattr(self, name), name, known)
        settle(self, sharpness=number(self.sharpness, "sharpness", 0, ends="(]"))
        if self.length is not None:
            wanted = "be a whole number of draws >= 1"
            settle(self, length=whole(self.length, "length", 1, wanted))
        flag(self.rescale, "rescale")
        if not callable(self.mixing):
            settle(self, mixing=number(self.mixing, "mixing"))
            self._check_mixing(self.mixing)

    def _check_mixing(self, mixing: float) -> None:
        if self.normalization == "l1" and not 0 < mixing <= 1:
            raise ValueError(
                f"mixing must lie in (0, 1] with l1 normalization, got {mixing}; "
                "use softmax or a positive mixing"
            )
        if not 0 <= mixing <= 1:
            raise ValueError(f"mixing must lie in [0, 1], got {mixing}")

    def phase_length(self, n_coords: int) -> int:
        """Return the number of draws between two updates."""
        return super().phase_length(n_coords) if self.length is None else int(self.length)

    def init(self, n_coords: int, replace: bool = True) -> Any:
        """Return a fresh state."""
        return make_distribution(
            n_coords,
            gain=self.gain,
            normalization=self.normalization,
            memory=self.memory,
            rescale=self.rescale,
            sharpness=self.sharpness,
            length=self.phase_length(n_coords),
            refresh="touched" if replace or self.normalization == "l1" else "all",
        )
