"""Tables of schema `strategy`: what race engineers learn from, how they trained, and how they and all others race."""
from __future__ import annotations

from f1_pipelines.sim.policies.registry import POLICIES as SCRIPTED_POLICIES
from f1_pipelines.sim.scenarios.families import SPLITS
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS
from f1_pipelines.tables.schema import Column, Table

STAGES = ("untrained", "sft", "grpo")
_REFERENCES = ("expert", "oracle")  # the last of the scripted policies
POLICIES = (*(name for name in SCRIPTED_POLICIES if name not in _REFERENCES), *STAGES, *_REFERENCES)
VARIANTS = ("plain", "renamed", "hints", "training")

_FAMILY = Column("family", "VARCHAR", "Scenario family", required=True)
_SEED = Column("seed", "BIGINT", "Seed of the sprint", required=True, minimum=0)
_SPLIT = Column("split", "VARCHAR", "Split the seed belongs to", required=True, allowed=SPLITS)
_CIRCUIT = Column("circuit", "VARCHAR", "Circuit id", required=True)
_LAP = Column("lap", "INTEGER", "Lap called", required=True, minimum=1)
_POLICY = Column("policy", "VARCHAR", "Who calls the race", required=True, allowed=POLICIES)
_VARIANT = Column("variant", "VARCHAR", "plain; renamed: other names and car numbers on the same races; hints: with "
                  "memory of training races in the briefing; training: played to learn from, never reported",
                  required=True, allowed=VARIANTS)
_CHECKPOINT = Column("checkpoint", "VARCHAR", "Engineer's checkpoint; missing for a scripted policy")
_VERSIONS = (
    Column("env_version", "INTEGER", "Version of the environment", required=True, minimum=1),
    Column("prompt_version", "INTEGER", "Version of the observation's text", required=True, minimum=1),
    Column("scenes_version", "VARCHAR", "Digest of the circuits and fields that the races are made of", required=True),
)
_MADE = Column("made_at", "TIMESTAMPTZ", "When it was made (UTC)", required=True)

SFT_TURNS = Table(
    "strategy", "sft_turns", "What the expert called, lap by lap: examples to learn from",
    ("split", "collected_by", "turn"), (
        Column("turn", "VARCHAR", "family/seed/lap", required=True),
        Column("collected_by", "VARCHAR", "Policy that drove the race: the expert, or the student (DAgger)",
               required=True, allowed=("expert", "student")), _FAMILY, _SEED, _SPLIT, _CIRCUIT, _LAP,
        Column("prompt", "VARCHAR", "Text of the observation", required=True),
        Column("completion", "VARCHAR", "The expert's command", required=True),
        Column("expert_value", "DOUBLE",
               "Its value relative to the best command that the expert weighed [s]: 0 is the best, negative "
               "is worse; questions and messages have the value of STAY_OUT", maximum=0.001),
        Column("values_s", "VARCHAR", "The same of every call weighed, as JSON [s]", required=True),
        Column("near_tie", "BOOLEAN", "Another call was weighed within 0.3 s of the best", required=True),
        Column("reason", "VARCHAR", "The expert's reason, one sentence", required=True), *_VERSIONS,
    ), slice_by=("split", "collected_by"))

TRAINING_CURVE = Table(
    "strategy", "training_curve", "What was measured while an engineer trained", ("run", "stage", "step", "metric"), (
        Column("run", "VARCHAR", "Training run: the checkpoint that came of it", required=True),
        Column("stage", "VARCHAR", "sft or grpo", required=True, allowed=STAGES[1:]),
        Column("profile", "VARCHAR", "Profile", required=True),
        Column("training_seed", "INTEGER", "Seed of the training", required=True, minimum=0),
        Column("step", "INTEGER", "Optimizer step", required=True, minimum=0),
        Column("metric", "VARCHAR", "loss, reward, entropy, kl, tokens_per_s, ...", required=True),
        Column("value", "DOUBLE", "Its value"),
    ), slice_by=("run",))

ENGINEERS = Table(
    "strategy", "engineers", "Checkpoints of race engineers", ("checkpoint",), (
        Column("checkpoint", "VARCHAR", "Digest of the weights, of the tokenizer and of what they mean", required=True),
        Column("stage", "VARCHAR", "untrained, sft or grpo", required=True, allowed=STAGES),
        Column("profile", "VARCHAR", "Profile", required=True),
        Column("parent", "VARCHAR", "Checkpoint it was trained from; missing for an untrained one"),
        Column("training_seed", "INTEGER", "Seed of the training", required=True, minimum=0),
        Column("n_turns", "INTEGER", "Turns or generated calls learnt from", required=True, minimum=0),
        Column("n_parameters", "BIGINT", "Weights of the model", required=True, minimum=1),
        Column("settings", "VARCHAR", "All dial settings as JSON", required=True), *_VERSIONS,
        Column("device", "VARCHAR", "Where it was trained", required=True),
        Column("seconds", "DOUBLE", "How long that took [s]", required=True, minimum=0),
        Column("tokens_per_s", "DOUBLE", "Training speed [tokens/s]", minimum=0),
        Column("peak_memory_gib", "DOUBLE", "Highest memory of the process so far, or of the GPU [GiB]", minimum=0),
        Column("path", "VARCHAR", "Folder in the folder of checkpoints", required=True),
        Column("promoted", "BOOLEAN", "Served as the engineer of its stage", required=True),
        Column("promotion", "VARCHAR", "Why it is served, or why not; missing before it was decided on"),
        Column("dagster_run", "VARCHAR", "Dagster run that made it"),
        Column("mlflow_run", "VARCHAR", "MLflow run of the training"), _MADE,
    ), slice_by=("checkpoint",))

EPISODES = Table(
    "strategy", "episodes", "Races on held-out seeds, every policy on the same ones",
    ("policy", "variant", "family", "seed"), (
        _POLICY, _VARIANT, _FAMILY, _SEED, _SPLIT, _CIRCUIT, _CHECKPOINT,
        Column("score", "DOUBLE", "Score of the race", required=True, minimum=0, maximum=1),
        *(Column(name, "DOUBLE", f"Dimension {name} of the score", required=True, minimum=0, maximum=1)
          for name in DIMENSIONS),
        Column("finish_position", "INTEGER", "Place at the flag", minimum=1),
        Column("best_position", "INTEGER", "Best place that was possible", minimum=1),
        Column("regret", "DOUBLE", "The oracle's score less this one; missing for renamed races", minimum=-1,
               maximum=1),
        Column("regret_s", "DOUBLE", "What its stops cost over the best ones, luck aside [s]"),
        Column("laps_called", "INTEGER", "Laps that were called", required=True, minimum=1),
        Column("parse_failures", "INTEGER", "Outputs that were no command", required=True, minimum=0),
        Column("fallbacks", "INTEGER", "Calls that a script made in its place; always 0", required=True, minimum=0,
               maximum=0),
        *_VERSIONS, _MADE,
    ), slice_by=("policy", "variant"))

DECISIONS = Table(
    "strategy", "decisions", "Every call of every race, as it was put out",
    ("policy", "variant", "family", "seed", "lap"), (
        _POLICY, _VARIANT, _FAMILY, _SEED, _LAP,
        Column("observation_hash", "VARCHAR", "Digest of the text that was read", required=True),
        Column("raw_output", "VARCHAR", "What was put out, unchanged", required=True),
        Column("command", "VARCHAR", "The command understood; missing where it did not parse"),
        Column("error", "VARCHAR", "Why it did not parse"),
        Column("reward", "DOUBLE", "Step reward", required=True),
        Column("oracle_command", "VARCHAR", "What the best race found has in this lap"),
        Column("regret", "DOUBLE", "Score lost for good by this call, whenever the oracle takes over after it",
               minimum=0, maximum=1),
    ), slice_by=("policy", "variant"))

LEADERBOARD = Table(
    "strategy", "leaderboard", "Mean scores with intervals, by policy and family", ("policy", "variant", "family"), (
        _POLICY, _VARIANT,
        Column("family", "VARCHAR", "Scenario family; all: the six weighed alike; unseen_circuit: circuits never "
               "trained on, families weighed alike", required=True), _CHECKPOINT,
        Column("n", "INTEGER", "Races", required=True, minimum=1),
        Column("mean", "DOUBLE", "Mean score", required=True, minimum=0, maximum=1),
        Column("low", "DOUBLE", "Lower end of its 95 % bootstrap interval", required=True),
        Column("high", "DOUBLE", "Upper end", required=True),
        Column("gap_closed", "DOUBLE", "(policy - untrained) / (expert - untrained) on the same races"),
        Column("gap_low", "DOUBLE", "Lower end of its 95 % interval"), Column("gap_high", "DOUBLE", "Upper end"),
        Column("over_sft", "DOUBLE", "Mean difference to the SFT engineer on the same races"),
        Column("over_sft_low", "DOUBLE", "Lower end of its paired 95 % interval"),
        Column("over_sft_high", "DOUBLE", "Upper end"),
        Column("regret", "DOUBLE", "Mean of the oracle's score less this one"),
        *(Column(name, "DOUBLE", f"Mean of dimension {name}", required=True) for name in DIMENSIONS),
        Column("parse_failures", "DOUBLE", "Share of outputs that were no command", required=True, minimum=0,
               maximum=1),
        Column("constant_score", "BOOLEAN", "All races have the same score, which no honest race engineer reaches",
               required=True),
        *_VERSIONS, _MADE,
    ), slice_by=("policy", "variant"))

POSTMORTEMS = Table(
    "strategy", "postmortems", "What went wrong in each race, if anything did",
    ("policy", "variant", "family", "seed"), (
        _POLICY, _VARIANT, _FAMILY, _SEED, _SPLIT, _CIRCUIT, _CHECKPOINT,
        Column("kind", "VARCHAR", "Kind of failure, or none", required=True),
        Column("lap", "INTEGER", "Lap of the first costly call; missing without one", minimum=1),
        Column("command", "VARCHAR", "What was called there"),
        Column("better", "VARCHAR", "The better order of calls from there on"),
        Column("signal", "VARCHAR", "What was there to see or to ask for"),
        Column("cost", "DOUBLE", "Score lost by that call", minimum=-1, maximum=1),
        Column("regret", "DOUBLE", "Score lost in all", required=True, minimum=-1, maximum=1),
        Column("lesson", "VARCHAR", "All of it in one sentence", required=True), _MADE,
    ), slice_by=("policy", "variant"))

STRATEGY_TABLES = (SFT_TURNS, TRAINING_CURVE, ENGINEERS, EPISODES, DECISIONS, LEADERBOARD, POSTMORTEMS)
