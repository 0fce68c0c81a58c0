"""Where training runs."""
import dagster as dg
from pydantic import Field


class Compute(dg.ConfigurableResource):
    """The device that training uses. Nothing touches torch or CUDA before a step asks."""

    device: str = Field("auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$",
                        description="cpu, cuda, cuda:1, or auto: CUDA where there is one, else the CPU.")

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
