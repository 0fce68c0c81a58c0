"""Which language model is trained, and where its checkpoints lie."""
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

if TYPE_CHECKING:
    from f1_pipelines.engineer.profiles import Profile


class Engineers(dg.ConfigurableResource[None]):
    """The profile, and folders beside the warehouse. Nothing imports transformers before a step asks."""

    profile: str = Field("tiny", description="tiny, smollm2, qwen3-0.6b or qwen3-4b (F1_PROFILE).")
    path: str = Field(description="Folder with one folder per checkpoint of an engineer.")
    pictures: str = Field(description="Folder of pictures that pages show.")
    weights: str = Field("", description="Folder with the weights of a hub profile; empty: the hub.")

    @property
    def chosen(self) -> "Profile":
        """The profile.

        Raises:
            UnknownProfile: The message names the valid ones.
        """
        from f1_pipelines.engineer.profiles import profile_of

        return profile_of(self.profile)

    @property
    def folder(self) -> Path:
        return Path(self.path)

    def work(self, stage: str, seed: int) -> Path:
        """Folder of a training under way: what it resumes from, and its result."""
        return self.folder / "work" / f"{self.profile}-{stage}-{seed}"
