"""A kind of input: plain examples of it, changes of these, and what the library does with them.

A case is a plain example and a list of changes. Case n of a seed is always the same; fewer changes
make a smaller case, so that the smallest one with the same finding can be looked for.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from campaigns.mutations import Edit, Mutation, applied, drawn_edit

_MAX_EDITS = 8
_SHARE_OF_SINGLE_EDITS = 0.6


@dataclass(frozen=True)
class Case:
    """A plain example, by name, and the changes to it."""

    base: str
    edits: Sequence[Edit]


class Kind(ABC):
    """A kind of input; `name` is its name on the command line."""

    name: str

    @cached_property
    def bases(self) -> Mapping[str, Any]:
        """Plain examples, made once: this also loads the kernels that cases need."""
        return self.build()

    @abstractmethod
    def build(self) -> Mapping[str, Any]:
        """Return plain examples by their names."""

    @abstractmethod
    def drawn(self, rng: Generator, base: str) -> list[Edit]:
        """Draw changes of an example."""

    @abstractmethod
    def run(self, case: Case, folder: Path) -> None:
        """Hand the changed example to the library; files go to the folder."""

    def case(self, seed: int, number: int) -> Case:
        """Return a case of a seed."""
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode()), number])
        base = str(rng.choice(list(self.bases)))
        return Case(base, self.drawn(rng, base))


class FileKind(Kind):
    """Files: an example is a folder of them, by name, of which the library is handed the first.

    Changes are drawn from `mutations`, or from those that `mutations_of` gives for a base.
    """

    mutations: Mapping[str, Mutation] = {}

    def drawn(self, rng: Generator, base: str) -> list[Edit]:
        """Draw a few changes of any of the files."""
        mutations = self.mutations_of(base)
        n_edits = min(int(rng.geometric(_SHARE_OF_SINGLE_EDITS)), _MAX_EDITS)
        n_files = len(self.bases[base])
        return [drawn_edit(rng, mutations, n_files) for _ in range(n_edits)]

    def mutations_of(self, base: str) -> Mapping[str, Mutation]:
        """Return the changes that fit an example."""
        return self.mutations

    def run(self, case: Case, folder: Path) -> None:
        """Write the files and use them."""
        files = dict(self.bases[case.base])
        names = list(files)
        for edit in case.edits:
            name = names[edit[1] % len(names)]
            files[name] = applied(files[name], edit)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.use(folder / names[0], case.base)

    @abstractmethod
    def use(self, path: Path, base: str) -> None:
        """Read a file with the library, and use what comes of it."""
