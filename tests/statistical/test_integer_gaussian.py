"""The noise has the distribution it should have, exactly."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import numpy.typing as npt
import opendp.prelude as dp
import pytest
from scipy.stats import chi2_contingency, chisquare, kstest, norm

import goodfence
from goodfence.kernels.gaussian import fill_gaussians
from goodfence.privacy.noise import SIGMA, SeededNoise, SystemNoise, integer_gaussians
from goodfence.rng import Streams
from tests.support import reference
from tests.support.contracts import FALSE_ALARM

dp.enable_features("contrib")
SEED = 20240611


def seeded_words(n: int) -> npt.NDArray[np.uint64]:
    return Streams(SEED).words(n)


def drawn(n: int, bits: int) -> npt.NDArray[np.int64]:
    out = np.empty(n, dtype=np.int64)
    integer_gaussians(out, bits, seeded_words)
    return out


@pytest.mark.parametrize("bits", [0, 1, 2, 4])
def test_small_sigma_has_the_exact_distribution(bits: int) -> None:
    n = 200_000
    values, exact = reference.integer_gaussian_distribution(2**bits)
    frequent = exact * n >= 10
    draws = drawn(n, bits)
    observed = np.array([(draws == value).sum() for value in values[frequent]])
    observed = np.append(observed, n - observed.sum())
    expected = np.append(exact[frequent], 1 - exact[frequent].sum()) * n
    assert chisquare(observed, expected).pvalue > FALSE_ALARM


def test_it_is_the_distribution_of_opendp() -> None:
    n, bits = 20_000, 2
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=dp.f64)
    theirs = np.array(dp.m.make_gaussian(*space, scale=float(2**bits))([0] * n))
    ours = drawn(n, bits)
    edges = np.arange(-9, 11) - 0.5
    table = [np.histogram(np.clip(draws, -9, 9), edges)[0] for draws in (theirs, ours)]
    assert chi2_contingency(table).pvalue > FALSE_ALARM


@pytest.mark.parametrize("draws", [SystemNoise().draw(200_000), SeededNoise(Streams(SEED)).draw(200_000)])
def test_the_noise_used_has_the_shape_of_a_gaussian(draws: npt.NDArray[np.int64]) -> None:
    # At this sigma the integer Gaussian is within 1e-9 of the real one, far below what 200,000 draws can tell.
    assert kstest(draws / SIGMA, norm.cdf).pvalue > FALSE_ALARM
    even = int((draws % 2 == 0).sum())
    assert chisquare([even, len(draws) - even]).pvalue > FALSE_ALARM  # the lowest bit is noise too


@pytest.mark.kernel
def test_draws_do_not_depend_on_how_words_are_fetched() -> None:
    words = seeded_words(60_000)
    whole = np.empty(2_000, dtype=np.int64)
    assert fill_gaussians(words, 3, whole)[0] == len(whole)
    supply = iter(np.array_split(words, 3_000))
    pieces = np.empty(2_000, dtype=np.int64)
    integer_gaussians(pieces, 3, lambda _: next(supply))
    assert (whole == pieces).all()


@pytest.mark.kernel
@pytest.mark.parametrize("bits", [0, 3, 24])
def test_the_kernel_is_its_plain_twin(bits: int) -> None:
    words = seeded_words(20_000)
    out = np.empty(500, dtype=np.int64)
    made, used = fill_gaussians(words, bits, out)
    twin, read = reference.integer_gaussians(words.tolist(), bits, 500)
    assert made == 500
    assert (out.tolist(), used) == (twin, read)


def test_two_draws_of_the_system_differ() -> None:
    assert (SystemNoise().draw(50) != SystemNoise().draw(50)).any()


def test_no_other_generator_is_on_the_proved_path() -> None:
    """Only `SeededNoise` may draw from NumPy; no `random`, `secrets` only for a key that hashes."""
    root = Path(goodfence.__file__).parent
    files = [*(root / "privacy").glob("*.py"), *(root / "models" / "private").glob("*.py")]
    files += [root / "kernels" / f"{name}.py" for name in ("gaussian", "private")]
    drawing = [f"{file.name}:{name}" for file in files for name in _drawing(file)]
    assert drawing == ["noise.py:SeededNoise", "life.py:import secrets"]


def _drawing(file: Path) -> list[str]:
    """Return the classes, functions and other statements at the top of a file that draw, or could."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [getattr(one, "name", ast.unparse(one)) for one in tree.body if _draws(one)]


def _draws(tree: ast.stmt) -> bool:
    generators = {"random", "normal", "standard_normal", "default_rng", "Generator", "RandomState"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in generators:
            return True
        names = [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
        if {"random", "secrets", "numpy.random"} & set(names):
            return True
    return False
