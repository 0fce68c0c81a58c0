"""Tables of schema `strategy`: training data, training and evaluation of race engineers and scripted policies."""
from __future__ import annotations

from f1_pipelines.sim.policies.registry import POLICIES as SCRIPTED_POLICIES
from f1_pipelines.sim.scenarios.families import SPLITS
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS
from f1_pipelines.tables.schema import Column, Table

STAGES = ("untrained", "sft", "grpo")
_REFERENCES = ("expert", "oracle")  # scripted policies that come last
POLICIES = (*(name for name in SCRIPTED_POLICIES if name not in _REFERENCES), *STAGES, *_REFERENCES)
VARIANTS = ("plain", "renamed", "hints", "training")

_FAMILY = Column("family", "VARCHAR", "Scenario family", required=True)
_SEED = Column("seed", "BIGINT", "Seed of the sprint", required=True, minimum=0)
_SPLIT = Column("split", "VARCHAR", "Split of the seed", required=True, allowed=SPLITS)
_CIRCUIT = Column("circuit", "VARCHAR", "Circuit id", required=True)
_LAP = Column("lap", "INTEGER", "Lap of the call", required=True, minimum=1)
_POLICY = Column("policy", "VARCHAR", "Policy that calls the race", required=True, allowed=POLICIES)
_VARIANT = Column("variant", "VARCHAR", "plain; renamed: other names and car numbers on the same races; hints: lessons "
                  "from training races in the briefing; training: training data, never reported", required=True,
                  allowed=VARIANTS)
_CHECKPOINT = Column("checkpoint", "VARCHAR", "Engineer's checkpoint; missing for a scripted policy")
_VERSIONS = (
    Column("env_version", "INTEGER", "Version of the environment", required=True, minimum=1),
    Column("prompt_version", "INTEGER", "Version of the observation's text", required=True, minimum=1),
    Column("scenes_version", "VARCHAR", "Digest of the circuits and fields in the scenarios", required=True),
)
_MADE = Column("made_at", "TIMESTAMPTZ", "When it was made (UTC)", required=True)

SFT_TURNS = Table(
    "strategy", "sft_turns", "The expert's calls lap by lap, as examples for SFT",
    ("split", "collected_by", "turn"), (
        Column("turn", "VARCHAR", "family/seed/lap", required=True),
        Column("collected_by", "VARCHAR", "Policy that drove the race: the expert, or the student (DAgger)",
               required=True, allowed=("expert", "student")), _FAMILY, _SEED, _SPLIT, _CIRCUIT, _LAP,
        Column("prompt", "VARCHAR", "Text of the observation", required=True),
        Column("completion", "VARCHAR", "The expert's command", required=True),
        Column("expert_value", "DOUBLE",
               "Expert's estimated value relative to the best command [s]: 0 is the best, negative is worse; "
               "questions and messages have the value of STAY_OUT", maximum=0.001),
        Column("values_s", "VARCHAR", "The same for every command compared, as JSON [s]", required=True),
        Column("near_tie", "BOOLEAN", "Whether another command was within 0.3 s of the best", required=True),
        Column("reason", "VARCHAR", "The expert's reason, one sentence", required=True), *_VERSIONS,
    ), slice_by=("split", "collected_by"))

TRAINING_CURVE = Table(
    "strategy", "training_curve", "Metrics of engineers' trainings by step", ("run", "stage", "step", "metric"), (
        Column("run", "VARCHAR", "Training run, named by its final checkpoint", required=True),
        Column("stage", "VARCHAR", "sft or grpo", required=True, allowed=STAGES[1:]),
        Column("profile", "VARCHAR", "Profile", required=True),
        Column("training_seed", "INTEGER", "Seed of the training", required=True, minimum=0),
        Column("step", "INTEGER", "Optimizer step", required=True, minimum=0),
        Column("metric", "VARCHAR", "loss, reward, entropy, kl, tokens_per_s, ...", required=True),
        Column("value", "DOUBLE", "Value of the metric"),
    ), slice_by=("run",))

ENGINEERS = Table(
    "strategy", "engineers", "Checkpoints of race engineers", ("checkpoint",), (
        Column("checkpoint", "VARCHAR", "Digest of the weights, the tokenizer and their metadata", required=True),
        Column("stage", "VARCHAR", "untrained, sft or grpo", required=True, allowed=STAGES),
        Column("profile", "VARCHAR", "Profile", required=True),
        Column("parent", "VARCHAR", "Checkpoint from which training started; missing for an untrained one"),
        Column("training_seed", "INTEGER", "Seed of the training", required=True, minimum=0),
        Column("n_turns", "INTEGER", "Number of training turns or generated calls", required=True, minimum=0),
        Column("n_parameters", "BIGINT", "Number of weights", required=True, minimum=1),
        Column("settings", "VARCHAR", "All hyperparameters as JSON", required=True), *_VERSIONS,
        Column("device", "VARCHAR", "Device of the training", required=True),
        Column("seconds", "DOUBLE", "Duration of the training [s]", required=True, minimum=0),
        Column("tokens_per_s", "DOUBLE", "Training speed [tokens/s]", minimum=0),
        Column("peak_memory_gib", "DOUBLE", "Peak memory of the process so far, or of the GPU [GiB]", minimum=0),
        Column("path", "VARCHAR", "Subfolder in the folder of checkpoints", required=True),
        Column("promoted", "BOOLEAN", "Whether it is served as the engineer of its stage", required=True),
        Column("promotion", "VARCHAR", "Why it is served, or why not; missing before the decision"),
        Column("dagster_run", "VARCHAR", "Dagster run that trained it"),
        Column("mlflow_run", "VARCHAR", "MLflow run of the training"), _MADE,
    ), slice_by=("checkpoint",))

EPISODES = Table(
    "strategy", "episodes", "Races on held-out seeds, the same for every policy",
    ("policy", "variant", "family", "seed"), (
        _POLICY, _VARIANT, _FAMILY, _SEED, _SPLIT, _CIRCUIT, _CHECKPOINT,
        Column("score", "DOUBLE", "Score of the race", required=True, minimum=0, maximum=1),
        *(Column(name, "DOUBLE", f"Dimension {name} of the score", required=True, minimum=0, maximum=1)
          for name in DIMENSIONS),
        Column("finish_position", "INTEGER", "Position at the flag", minimum=1),
        Column("best_position", "INTEGER", "Best possible position", minimum=1),
        Column("regret", "DOUBLE", "The oracle's score minus this one; missing for renamed races", minimum=-1,
               maximum=1),
        Column("regret_s", "DOUBLE", "Time lost by its stops against the best ones, luck aside [s]"),
        Column("laps_called", "INTEGER", "Number of laps with a call", required=True, minimum=1),
        Column("parse_failures", "INTEGER", "Outputs that are not a command", required=True, minimum=0),
        Column("fallbacks", "INTEGER", "Calls of a script in place of the policy; always 0", required=True, minimum=0,
               maximum=0),
        *_VERSIONS, _MADE,
    ), slice_by=("policy", "variant"))

DECISIONS = Table(
    "strategy", "decisions", "Every call of every race, with the raw output",
    ("policy", "variant", "family", "seed", "lap"), (
        _POLICY, _VARIANT, _FAMILY, _SEED, _LAP,
        Column("observation_hash", "VARCHAR", "Digest of the observation's text", required=True),
        Column("raw_output", "VARCHAR", "Unchanged output of the policy", required=True),
        Column("command", "VARCHAR", "The parsed command; missing if parsing failed"),
        Column("error", "VARCHAR", "Why parsing failed"),
        Column("reward", "DOUBLE", "Step reward", required=True),
        Column("oracle_command", "VARCHAR", "Command in this lap of the best race that the oracle found"),
        Column("regret", "DOUBLE", "Score that this call lost for good, even if the oracle takes over after it",
               minimum=0, maximum=1),
    ), slice_by=("policy", "variant"))

LEADERBOARD = Table(
    "strategy", "leaderboard", "Mean scores with intervals, by policy and family", ("policy", "variant", "family"), (
        _POLICY, _VARIANT,
        Column("family", "VARCHAR", "Scenario family; all: equal weights of the six; unseen_circuit: circuits never "
               "trained on, equal weights of families", required=True), _CHECKPOINT,
        Column("n", "INTEGER", "Races", required=True, minimum=1),
        Column("mean", "DOUBLE", "Mean score", required=True, minimum=0, maximum=1),
        Column("low", "DOUBLE", "Lower end of its 95 % bootstrap interval", required=True),
        Column("high", "DOUBLE", "Upper end", required=True),
        Column("gap_closed", "DOUBLE", "(policy - untrained) / (expert - untrained) on the same races"),
        Column("gap_low", "DOUBLE", "Lower end of its 95 % interval"), Column("gap_high", "DOUBLE", "Upper end"),
        Column("over_sft", "DOUBLE", "Mean difference to the SFT engineer on the same races"),
        Column("over_sft_low", "DOUBLE", "Lower end of its paired 95 % interval"),
        Column("over_sft_high", "DOUBLE", "Upper end"),
        Column("regret", "DOUBLE", "Mean of the oracle's score minus this one"),
        *(Column(name, "DOUBLE", f"Mean of dimension {name}", required=True) for name in DIMENSIONS),
        Column("parse_failures", "DOUBLE", "Share of outputs that are not a command", required=True, minimum=0,
               maximum=1),
        Column("constant_score", "BOOLEAN", "Whether all races have the same score, a sign that the score is gamed",
               required=True),
        *_VERSIONS, _MADE,
    ), slice_by=("policy", "variant"))

POSTMORTEMS = Table(
    "strategy", "postmortems", "Main failure of each race, if any",
    ("policy", "variant", "family", "seed"), (
        _POLICY, _VARIANT, _FAMILY, _SEED, _SPLIT, _CIRCUIT, _CHECKPOINT,
        Column("kind", "VARCHAR", "Kind of failure, or none", required=True),
        Column("lap", "INTEGER", "Lap of the first costly call; missing without one", minimum=1),
        Column("command", "VARCHAR", "Call in that lap"),
        Column("better", "VARCHAR", "Better sequence of calls from that lap on"),
        Column("signal", "VARCHAR", "Information that the policy had or could have asked for"),
        Column("cost", "DOUBLE", "Score lost by that call", minimum=-1, maximum=1),
        Column("regret", "DOUBLE", "Total score lost", required=True, minimum=-1, maximum=1),
        Column("lesson", "VARCHAR", "Summary in one sentence", required=True), _MADE,
    ), slice_by=("policy", "variant"))

STRATEGY_TABLES = (SFT_TURNS, TRAINING_CURVE, ENGINEERS, EPISODES, DECISIONS, LEADERBOARD, POSTMORTEMS)
