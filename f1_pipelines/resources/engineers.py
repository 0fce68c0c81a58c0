"""The profile of the language model, and the folders of its checkpoints."""
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

if TYPE_CHECKING:
    from f1_pipelines.engineer.profiles import Profile


class Engineers(dg.ConfigurableResource[None]):
    """The profile of race engineers, and their folders beside the warehouse. transformers is imported on first use."""

    profile: str = Field("tiny", description="tiny, smollm2, qwen3-0.6b or qwen3-4b (F1_PROFILE).")
    path: str = Field(description="Folder with one folder per checkpoint of an engineer.")
    pictures: str = Field(description="Folder of the plots on pages.")
    weights: str = Field("", description="Folder with the weights of a hub profile; empty: the hub.")

    @property
    def chosen(self) -> "Profile":
        """The profile named by `profile`.

        Raises:
            UnknownProfile: The message names the valid ones.
        """
        from f1_pipelines.engineer.profiles import profile_of

        return profile_of(self.profile)

    @property
    def folder(self) -> Path:
        return Path(self.path)

    def work(self, stage: str, seed: int) -> Path:
        """Folder of a training's resume state and result."""
        return self.folder / "work" / f"{self.profile}-{stage}-{seed}"
