"""The numeric tests again in processes that use fewer of the processor's instructions: every sum in another order.

numpy and torch choose their code by the processor they run on. Both can be told to leave instructions out, so one
machine shows what others compute. BLAS stays as the machine has it.
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
# Once with nothing optional, once with little less than this machine has: the shortest of them.
SELECTED = {"default": (*NUMERIC, "tests/backtest/test_real_evaluation.py"),
            "avx2": ("tests/evaluation/test_metrics.py", "tests/evaluation/test_calibration.py",
                     "tests/evaluation/test_probabilities.py")}
# Many orders of many rows: they take long, and others of their kind are run.
LEFT_OUT = ("tied_scores", "any_order_of_the_races", "order_of_the_rows")
AVX512 = ("X86_V4", "AVX512")  # beginnings of numpy's names for what a processor with AVX2 lacks


def optional_features() -> list[str]:
    """Instruction sets that numpy uses here and can do without."""
    return np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])


@pytest.mark.parametrize("torch_uses", SELECTED)
def test_numbers_hold_with_fewer_instructions(torch_uses):
    lacking = [feature for feature in optional_features() if torch_uses == "default" or feature.startswith(AVX512)]
    if not lacking:
        pytest.skip(f"this processor has nothing that {torch_uses} lacks")
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": torch_uses, "NPY_DISABLE_CPU_FEATURES": " ".join(lacking)}
    used = subprocess.run(
        [sys.executable, "-c", "import numpy, torch; print(torch.backends.cpu.get_cpu_capability(), "
         "*numpy.show_config(mode='dicts')['SIMD Extensions'].get('found', []))"],
        env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert used[0] == torch_uses.upper() and not set(lacking) & set(used[1:])
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *SELECTED[torch_uses],
         "-k", " and ".join(f"not {name}" for name in LEFT_OUT)],
        cwd=ROOT, env=environment, capture_output=True, text=True)
    assert tests.returncode == 0, tests.stdout[-6000:] + tests.stderr[-2000:]
