"""The device, processes and memory of training."""
import sys
from collections.abc import Sequence

import dagster as dg
from pydantic import Field

GIB = 2**30
LAUNCHERS = "in_process|subprocess|accelerate"


class NotEnoughMemory(RuntimeError):
    """A model does not fit into memory. The message says how much is free, how much is needed and what to do."""


class Compute(dg.ConfigurableResource[None]):
    """The device that training uses. torch is imported on first use."""

    device: str = Field(default="auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$",
                        description="cpu, cuda, cuda:1, or auto: CUDA if available, else the CPU.")
    precision: str = Field(default="auto", pattern=r"^(auto|float32|bfloat16)$",
                           description="Number format in which language models compute in training, with float32 "
                                       "weights, and in evaluation. auto: bfloat16 on CUDA if the profile wants it.")
    launcher: str = Field(default="in_process", pattern=rf"^({LAUNCHERS})$",
                          description="Where language models train: in this process, in a subprocess (Dagster Pipes), "
                                      "or in processes that accelerate starts.")
    processes: int = Field(default=0, ge=0,
                           description="Number of processes that train together under launcher accelerate, each on a "
                                       "separate GPU. 0: one per GPU, or one on the CPU.")

    def resolve(self) -> str:
        """The name of the device to use.

        Raises:
            RuntimeError: The device is CUDA, and none is available.
        """
        import torch

        if self.device == "auto":
            return "cuda" if torch.cuda.is_available() else "cpu"
        if self.device.startswith("cuda") and not torch.cuda.is_available():
            raise RuntimeError(f"device {self.device} was asked for, but torch {torch.__version__} sees no CUDA "
                               "device; set device to cpu or auto")
        return self.device

    def precision_on(self, device: str, wants_bf16: bool) -> str:
        """float32 or bfloat16, for a profile on a device."""
        if self.precision != "auto":
            return self.precision
        return "bfloat16" if wants_bf16 and device != "cpu" else "float32"

    def processes_on(self, device: str) -> int:
        """The number of processes that train together on a device of `resolve`.

        Raises:
            RuntimeError: `processes` is too high; the message says why and what to do.
        """
        request = f"{self.processes} processes were asked for"
        if self.launcher != "accelerate":
            if self.processes > 1:
                raise RuntimeError(f"{request}, but launcher {self.launcher} starts one; set launcher to accelerate, "
                                   "or processes to 0")
            return 1
        if device == "cpu":
            return max(self.processes, 1)
        if device != "cuda":
            if self.processes > 1:
                raise RuntimeError(f"{request}, but device {device} is a single GPU; set device to cuda, or processes "
                                   "to 1")
            return 1
        import torch

        gpus = torch.cuda.device_count()
        if self.processes > gpus:
            raise RuntimeError(f"{request}, each on a separate GPU, but torch sees {gpus}; set processes to {gpus} or "
                               "less, or to 0 for one per GPU")
        return self.processes or gpus

    def require(self, free_gib: float, what: str, device: str, processes: int = 1) -> None:
        """Check that a model fits into the free memory.

        Args:
            free_gib: Memory that each process needs [GiB].
            what: Name of the model or profile, for the message.
            device: Device of `resolve`.
            processes: Number of processes. On the CPU they share its memory, else each has a GPU.

        Raises:
            NotEnoughMemory: The model does not fit.
        """
        needed = free_gib * processes if device == "cpu" else free_gib
        for name in [device] if device == "cpu" or processes == 1 else [f"cuda:{k}" for k in range(processes)]:
            free = free_memory_gib(name)
            if free < needed:
                raise NotEnoughMemory(f"{what} needs {needed:g} GiB free on {name}, and there are {free:.1f}; stop "
                                      "what else runs there, or take a smaller profile (F1_PROFILE=tiny)")

    def command(self, module: str, arguments: Sequence[str], processes: int = 1) -> list[str]:
        """The command line that runs a module under this launcher in `processes` processes.

        It overrides the number of processes and the precision of the machine's `accelerate config`.
        """
        launch = ["-m", "accelerate.commands.launch", *(["--multi_gpu"] if processes > 1 else []),
                  "--num_processes", str(processes), "--num_machines", "1", "--main_process_port", "0",
                  "--mixed_precision", "no", "--dynamo_backend", "no"] if self.launcher == "accelerate" else []
        return [sys.executable, *launch, "-m", module, *arguments]


def free_memory_gib(device: str) -> float:
    """Available memory of a device [GiB]."""
    if device != "cpu":
        import torch

        return torch.cuda.mem_get_info(device)[0] / GIB
    with open("/proc/meminfo") as table:
        fields = dict(line.split(":", 1) for line in table)
    return int(fields["MemAvailable"].split()[0]) / 2**20
