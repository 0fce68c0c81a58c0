"""`python -m f1_pipelines.engineer.training.job` at toy size. With seed 13 the second process fails at its start.

Imports are below the guard because the processes that drive the expert's races import this module, too.
"""
SEED_THAT_FAILS, WORDS = 13, "the second process fails on purpose"

if __name__ == "__main__":
    import json
    import os
    import sys
    from dataclasses import replace
    from pathlib import Path

    from f1_pipelines.engineer.profiles import PROFILES
    from f1_pipelines.engineer.progress import TrainingFailed
    from f1_pipelines.engineer.training import grpo, job, stages
    from f1_pipelines.engineer.training.callbacks import MetricsCallback
    from f1_pipelines.engineer.training.kl_probes import KlProbes
    from tests.engineer.conftest import TOY

    def fail(*_: object, **__: object) -> None:
        raise TrainingFailed(WORDS)

    PROFILES["tiny"] = replace(PROFILES["tiny"], architecture=TOY, max_new_tokens=12)
    stages.SELECTION_RACES, grpo.SAVED_EVERY, KlProbes.COUNT = 1, 1, 5
    if json.loads(Path(sys.argv[1]).read_text())["seed"] == SEED_THAT_FAILS and os.environ["RANK"] == "1":
        MetricsCallback.on_train_begin = fail
    job.main()
