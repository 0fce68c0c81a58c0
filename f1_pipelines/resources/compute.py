"""Where training runs."""
import sys
from collections.abc import Sequence

import dagster as dg
from pydantic import Field

GIB = 2**30
LAUNCHERS = "in_process|subprocess|accelerate"


class NotEnoughMemory(RuntimeError):
    """A model does not fit. One sentence: what is free, what is wanted, what to do."""


class Compute(dg.ConfigurableResource[None]):
    """The device that training uses. Nothing touches torch or CUDA before a step asks."""

    device: str = Field(default="auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$",
                        description="cpu, cuda, cuda:1, or auto: CUDA where there is one, else the CPU.")
    precision: str = Field(default="auto", pattern=r"^(auto|float32|bfloat16)$",
                           description="In which language models compute while they train, weights staying float32; "
                                       "and while they are evaluated. auto is bfloat16 on CUDA where the profile "
                                       "asks for it.")
    launcher: str = Field(default="in_process", pattern=rf"^({LAUNCHERS})$",
                          description="How language models train: in this process, in one of their own (Dagster "
                                      "Pipes), or in those that accelerate starts.")
    processes: int = Field(default=0, ge=0,
                           description="That train together under launcher accelerate, each on a GPU of its "
                                                "own; 0 is one for each GPU. On the CPU 0 is one.")

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

    def processes_on(self, device: str) -> int:
        """How many processes train together.

        Args:
            device: As `resolve` said.

        Raises:
            RuntimeError: So many can't; the message says why and what to do.
        """
        wanted = f"{self.processes} processes were asked for"
        if self.launcher != "accelerate":
            if self.processes > 1:
                raise RuntimeError(f"{wanted}, and launcher {self.launcher} starts one; set launcher to accelerate, or "
                                   "processes to 0")
            return 1
        if device == "cpu":
            return max(self.processes, 1)
        if device != "cuda":
            if self.processes > 1:
                raise RuntimeError(f"{wanted}, and device {device} is a single GPU; set device to cuda, or processes "
                                   "to 1")
            return 1
        import torch

        gpus = torch.cuda.device_count()
        if self.processes > gpus:
            raise RuntimeError(f"{wanted}, each on a GPU of its own, and torch sees {gpus}; set processes to {gpus} or "
                               "less, 0 for one on each")
        return self.processes or gpus

    def require(self, free_gib: float, what: str, device: str, processes: int = 1) -> None:
        """Refuse to begin what does not fit.

        Args:
            free_gib: Memory wanted by each process [GiB].
            what: Who wants it.
            device: As `resolve` said.
            processes: As `processes_on` said: on the CPU they share its memory, else each has a GPU.

        Raises:
            NotEnoughMemory: What is free, what was wanted and what to do.
        """
        wanted = free_gib * processes if device == "cpu" else free_gib
        for place in [device] if device == "cpu" or processes == 1 else [f"cuda:{k}" for k in range(processes)]:
            free = free_memory_gib(place)
            if free < wanted:
                raise NotEnoughMemory(f"{what} needs {wanted:g} GiB free on {place}, and there are {free:.1f}; stop "
                                      "what else runs there, or take a smaller profile (F1_PROFILE=tiny)")

    def command(self, module: str, arguments: Sequence[str], processes: int = 1) -> list[str]:
        """The command line that runs a module of ours under this launcher, in so many processes.

        What `accelerate config` may have written about this machine is overruled: number and precision are the job's.
        """
        launch = ["-m", "accelerate.commands.launch", *(["--multi_gpu"] if processes > 1 else []),
                  "--num_processes", str(processes), "--num_machines", "1", "--main_process_port", "0",
                  "--mixed_precision", "no", "--dynamo_backend", "no"] if self.launcher == "accelerate" else []
        return [sys.executable, *launch, "-m", module, *arguments]


def free_memory_gib(device: str) -> float:
    """Memory that a training could still have on a device [GiB]."""
    if device != "cpu":
        import torch

        return torch.cuda.mem_get_info(device)[0] / GIB
    with open("/proc/meminfo") as table:
        fields = dict(line.split(":", 1) for line in table)
    return int(fields["MemAvailable"].split()[0]) / 2**20
