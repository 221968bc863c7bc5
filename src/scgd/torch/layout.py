"""Where the parameters of a group lie on one line of real coordinates.

Coordinates are numbered through the group's tensors in order, row by row; a complex entry is two of
them. A unit (row, chunk or tensor) is a stretch of consecutive coordinates.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from scgd.typing import Floats, Ints

GRANULARITIES = ("coordinates", "rows", "chunks", "tensors")
CHUNK = 1024
Pieces = list[tuple[int, slice]]
FLOATS = (torch.float32, torch.float64)


def real_entries(tensor: torch.Tensor) -> torch.Tensor:
    """Return the entries this process holds as a real tensor that shares their memory."""
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is one stretch of ordinary memory in a working precision."""
    return (
        tensor.dtype in FLOATS
        and tensor.device.type == "cpu"
        and tensor.is_contiguous()
        and not hasattr(tensor, "to_local")
    )


def working_dtype(params: Sequence[torch.Tensor]) -> np.dtype:
    """Return the precision of gains and moments: double for double parameters, else single."""
    kinds = (torch.float64, torch.complex128)
    return np.dtype(np.float64 if any(p.dtype in kinds for p in params) else np.float32)


def places_of(params: Sequence[torch.Tensor]) -> list[tuple[Any, ...]]:
    """Return what tells that parameters are the same ones, as large as before and in place."""
    return [(id(p), p.data_ptr(), p.shape, p.stride(), p.dtype) for p in params]


def trainable(params: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the parameters that are not frozen."""
    return [p for p in params if p.requires_grad]


class Entries:
    """Single entries of any tensor, read as floats and written rounded to its precision."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.entries = tensor

    def __getitem__(self, index: int) -> float:
        """Return an entry."""
        return float(self.entries[np.unravel_index(index, self.entries.shape)])

    def __setitem__(self, index: int, value: float) -> None:
        """Set an entry."""
        self.entries[np.unravel_index(index, self.entries.shape)] = float(value)


def single_entries(tensor: torch.Tensor) -> Entries | memoryview:
    """Return access to single entries of a tensor, the fastest there is."""
    entries = real_entries(tensor)
    return entries.view(-1).numpy().data if is_plain(entries) else Entries(entries)


class Layout:
    """The coordinates of some tensors, and the units they are drawn in.

    Parameters
    ----------
    params
        The tensors.
    granularity
        ``"coordinates"``, ``"rows"`` (of tensors with two or more dimensions; a vector is one row),
        ``"chunks"`` of 1024 consecutive entries, or ``"tensors"``.

    Examples
    --------
    >>> layout = Layout([torch.zeros(3, 4), torch.zeros(3)], "rows")
    >>> layout.n_coords, layout.n_units
    (15, 4)
    """

    def __init__(self, params: Sequence[torch.Tensor], granularity: str = "coordinates") -> None:
        self.params = list(params)
        sizes = [real_entries(p).numel() for p in self.params]
        self.offsets: Ints = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.bounds = self.offsets.tolist()
        self.n_coords = self.bounds[-1]
        self.dtype = working_dtype(self.params)
        self.views: dict[int, Any] = {}
        self.starts: Ints | None = None
        self.unit_bounds = self.bounds
        if granularity != "coordinates":
            stretches = [self._stretches(p, granularity) for p in self.params]
            starts = [o + s for o, s in zip(self.offsets, stretches, strict=False)]
            self.starts = np.concatenate([*starts, [self.n_coords]]).astype(np.int64)
            self.unit_bounds = np.cumsum([0, *map(len, stretches)]).tolist()
        self.places = places_of(self.params)
        self.shapes = [real_entries(p).shape for p in self.params]

    @staticmethod
    def _stretches(param: torch.Tensor, granularity: str) -> Ints:
        entries = real_entries(param)
        if granularity == "chunks":
            width = CHUNK
        elif granularity == "rows" and param.ndim > 1 and len(entries) > 0:
            width = entries.numel() // len(entries)
        else:
            width = entries.numel()
        return np.arange(0, entries.numel(), max(width, 1), dtype=np.int64)

    @property
    def n_units(self) -> int:
        """The number of things a sampler draws from."""
        return self.n_coords if self.starts is None else len(self.starts) - 1

    def moved(self, places: list[tuple[Any, ...]]) -> None:
        """Note that the parameters lie elsewhere in memory."""
        self.places, self.views = places, {}

    def expand(self, units: Ints) -> tuple[Ints, Ints]:
        """Return all coordinates of some units and the number in each."""
        assert self.starts is not None
        first, sizes = self.starts[units], self.starts[units + 1] - self.starts[units]
        ends = np.cumsum(sizes)
        return np.repeat(first - ends + sizes, sizes) + np.arange(ends[-1]), sizes

    def split(self, coords: Ints) -> Pieces:
        """Return which tensors sorted coordinates fall in, and where in the list."""
        cuts = np.searchsorted(coords, self.offsets)
        pairs = zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
        return [(i, slice(low, high)) for i, (low, high) in enumerate(pairs) if low < high]

    def spot(self, coord: int) -> tuple[Any, int]:
        """Return access to the entries of a coordinate's tensor, and its index in there."""
        i = bisect_right(self.bounds, coord) - 1
        view = self.views.get(i)
        if view is None:
            view = self.views[i] = single_entries(self.params[i])
        return view, coord - self.bounds[i]

    def gather(
        self, tensors: Sequence[Any], coords: Ints, pieces: Pieces, sizes: Ints | None = None
    ) -> Floats:
        """Return entries of tensors shaped like the parameters, zero outside the pieces.

        ``sizes`` tells that the coordinates are stretches of these lengths, copied as such.
        """
        values = np.zeros(len(coords), self.dtype)
        for i, where in pieces:
            if sizes is not None and is_plain(tensors[i]):
                flat = tensors[i].detach().numpy().reshape(-1)
                for here, there in self.stretches(i, coords, where, sizes):
                    values[here] = flat[there]
            else:
                values[where] = self.read(tensors[i], coords[where] - self.bounds[i])
        return values

    def scatter(
        self, coords: Ints, pieces: Pieces, values: Floats, sizes: Ints | None = None
    ) -> None:
        """Set entries of the parameters."""
        for i, where in pieces:
            if sizes is not None and is_plain(self.params[i]):
                flat = self.params[i].detach().numpy().reshape(-1)
                for here, there in self.stretches(i, coords, where, sizes):
                    flat[there] = values[here]
            else:
                self.write(self.params[i], coords[where] - self.bounds[i], values[where])

    def stretches(
        self, i: int, coords: Ints, where: slice, sizes: Ints
    ) -> Iterator[tuple[slice, slice]]:
        """Yield where the stretches of one tensor lie in the list and in the tensor."""
        ends = np.cumsum(sizes)
        low, high = np.searchsorted(ends, [where.start, where.stop - 1], side="right")
        lengths = sizes[low : high + 1]
        begins = ends[low : high + 1] - lengths
        firsts = coords[begins] - self.bounds[i]
        for b, k, n in zip(begins.tolist(), firsts.tolist(), lengths.tolist(), strict=True):
            yield slice(b, b + n), slice(k, k + n)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the cached views behind."""
        return {**self.__dict__, "views": {}}

    def read(self, tensor: torch.Tensor, index: Ints) -> Floats:
        """Return some entries of a tensor in working precision."""
        if is_plain(tensor):
            return tensor.detach().numpy().reshape(-1)[index]
        picked = real_entries(tensor).reshape(-1)[torch.from_numpy(index).to(tensor.device)]
        return picked.cpu().numpy() if picked.dtype in FLOATS else picked.float().cpu().numpy()

    def write(self, tensor: torch.Tensor, index: Ints, values: Floats) -> None:
        """Set some entries of a tensor."""
        if is_plain(tensor):
            tensor.detach().numpy().reshape(-1)[index] = values
            return
        entries = real_entries(tensor)
        flat = entries.reshape(-1)
        new = torch.from_numpy(values).to(flat.device, flat.dtype)
        flat[torch.from_numpy(index).to(flat.device)] = new
        if flat.data_ptr() != entries.data_ptr():
            entries.copy_(flat.view(entries.shape))
