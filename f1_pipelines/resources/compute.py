"""Where training runs."""
import sys
from collections.abc import Sequence

import dagster as dg
from pydantic import Field

GIB = 2**30
LAUNCHERS = "in_process|subprocess|accelerate"


class NotEnoughMemory(RuntimeError):
    """A model does not fit. One sentence: what is free, what is wanted, what to do."""


class Compute(dg.ConfigurableResource):
    """The device that training uses. Nothing touches torch or CUDA before a step asks."""

    device: str = Field("auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$",
                        description="cpu, cuda, cuda:1, or auto: CUDA where there is one, else the CPU.")
    precision: str = Field("auto", pattern=r"^(auto|float32|bfloat16)$",
                           description="Of language models: auto is bfloat16 on CUDA where the profile asks for it.")
    launcher: str = Field("in_process", pattern=rf"^({LAUNCHERS})$",
                          description="How language models train: in this process, in one of their own (Dagster "
                                      "Pipes), or in one that accelerate starts, with what `accelerate config` says.")

    def resolve(self) -> str:
        """The device by name.

        Raises:
            RuntimeError: CUDA was asked for and there is none; `auto` would take the CPU.
        """
        import torch

        if self.device == "auto":
            return "cuda" if torch.cuda.is_available() else "cpu"
        if self.device.startswith("cuda") and not torch.cuda.is_available():
            raise RuntimeError(f"device {self.device} was asked for, but torch {torch.__version__} sees no CUDA "
                               "device; set device to cpu or auto")
        return self.device

    def precision_on(self, device: str, wants_bf16: bool) -> str:
        """float32 or bfloat16 for a profile on that device."""
        if self.precision != "auto":
            return self.precision
        return "bfloat16" if wants_bf16 and device != "cpu" else "float32"

    def require(self, free_gib: float, what: str, device: str) -> None:
        """Refuse to begin what does not fit.

        Args:
            free_gib: Memory wanted [GiB].
            what: Who wants it.
            device: As `resolve` said.

        Raises:
            NotEnoughMemory: What is free, what was wanted and what to do.
        """
        free = free_memory_gib(device)
        if free < free_gib:
            raise NotEnoughMemory(f"{what} needs {free_gib:g} GiB free on {device}, and there are {free:.1f}; stop "
                                  "what else runs there, or take a smaller profile (F1_PROFILE=tiny)")

    def command(self, module: str, arguments: Sequence[str]) -> list[str]:
        """The command line that runs a module of ours under this launcher."""
        if self.launcher == "accelerate":
            return [sys.executable, "-m", "accelerate.commands.launch", "--num_processes", "1",
                    "-m", module, *arguments]
        return [sys.executable, "-m", module, *arguments]


def free_memory_gib(device: str) -> float:
    """Memory that a training could still have on a device [GiB]."""
    if device != "cpu":
        import torch

        return torch.cuda.mem_get_info(device)[0] / GIB
    with open("/proc/meminfo") as table:
        told = dict(line.split(":", 1) for line in table)
    return int(told["MemAvailable"].split()[0]) / 2**20
