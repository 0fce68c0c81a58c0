"""Repeat the numeric tests with fewer of the processor's instruction sets, which reorders sums.

numpy and torch choose their code by processor. Both can disable instruction sets, so one machine can compute like
others. BLAS is unchanged.
"""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.timeout(300)
ROOT = Path(__file__).parents[1]
NUMERIC = (
    "tests/evaluation/test_metrics.py", "tests/evaluation/test_calibration.py",
    "tests/evaluation/test_bounded_metrics.py", "tests/evaluation/test_probabilities.py",
    "tests/features/test_bounds.py", "tests/engineer/evaluation/test_leaderboard.py",
    "tests/calibration/test_scores.py", "tests/models/test_losses.py",
)
# Without any optional set ("default"), and the fastest tests with AVX2 only.
SELECTED = {"default": (*NUMERIC, "tests/backtest/test_real_evaluation.py"),
            "avx2": ("tests/evaluation/test_metrics.py", "tests/evaluation/test_calibration.py",
                     "tests/evaluation/test_probabilities.py")}
# Slow property tests of row orders; similar tests run.
SKIPPED = ("tied_scores", "any_order_of_the_races", "order_of_the_rows")
AVX512 = ("X86_V4", "AVX512")  # prefixes of numpy's names of sets beyond AVX2


def optional_features() -> list[str]:
    """Instruction sets that numpy uses on this processor and can disable."""
    return np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])


@pytest.mark.parametrize("capability", SELECTED)
def test_numbers_hold_with_fewer_instructions(capability):
    disabled = [feature for feature in optional_features() if capability == "default" or feature.startswith(AVX512)]
    if not disabled:
        pytest.skip(f"this processor has no instruction set beyond {capability}")
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability, "NPY_DISABLE_CPU_FEATURES": " ".join(disabled)}
    used = subprocess.run(
        [sys.executable, "-c", "import numpy, torch; print(torch.backends.cpu.get_cpu_capability(), "
         "*numpy.show_config(mode='dicts')['SIMD Extensions'].get('found', []))"],
        env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert used[0] == capability.upper() and not set(disabled) & set(used[1:])
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *SELECTED[capability],
         "-k", " and ".join(f"not {name}" for name in SKIPPED)],
        cwd=ROOT, env=environment, capture_output=True, text=True)
    assert tests.returncode == 0, tests.stdout[-6000:] + tests.stderr[-2000:]
