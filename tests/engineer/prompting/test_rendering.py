"""SFT, GRPO, evaluation and serving share one rendering."""
from dataclasses import replace

import pytest

from f1_pipelines.engineer.profiles import PROFILES, UnknownProfile, profile_of
from f1_pipelines.engineer.prompting.rendering import Rendering
from f1_pipelines.engineer.training.sft import Example
from f1_pipelines.engineer.training.tiny_model import SPLIT_PATTERN
from f1_pipelines.engineer.training.tokenization_parity import parity_errors


@pytest.mark.parametrize("system", [False, True])
def test_training_and_generation_use_the_same_tokens(toy_tokenizer, examples, system):
    assert parity_errors(Rendering(toy_tokenizer, system), examples) == []


def test_parity_errors_name_thinking_learnt_prompts_missing_ends_and_missing_briefings(toy_tokenizer, examples):
    class Thinking(Rendering):
        def prompt(self, observation):
            return self.tokenizer.apply_chat_template(self.messages(observation), tokenize=False,
                                                      add_generation_prompt=True) + "<think>\nwell"

    class LearnsPrompt(Rendering):
        def example(self, observation, command):
            turn = super().example(observation, command)
            return turn | {"labels": turn["input_ids"]}

    class Endless(Rendering):
        def completion_ids(self, command):
            return super().completion_ids(command)[:-1]

    assert "thinking is on" in " ".join(parity_errors(Thinking(toy_tokenizer, False), examples[:1]))
    assert parity_errors(LearnsPrompt(toy_tokenizer, False), examples[:1])
    assert "the end of the turn is not learnt" in " ".join(parity_errors(Endless(toy_tokenizer, False), examples[:1]))
    bare = [Example(examples[0].prompt.splitlines()[0], "STAY_OUT")]
    assert "briefing" in parity_errors(Rendering(toy_tokenizer, False), bare)[0]


def test_a_completion_decodes_to_its_command_up_to_the_end_of_the_turn(toy_tokenizer):
    rendering = Rendering(toy_tokenizer, False)
    for command in ("PIT_NOW hard", 'RADIO_DRIVER "Box lap 7 for hards, rain on lap 9"', "HOLD_GAP 44", "ünïcode"):
        assert rendering.command([*rendering.completion_ids(command), *rendering.completion_ids("STAY_OUT")]) == command


def test_the_chat_template_around_an_observation_is_four_tokens(toy_tokenizer):
    frame = toy_tokenizer.tokenize(Rendering(toy_tokenizer, False).prompt(""))
    assert frame == ["<|im_start|>", "userĊ", "<|im_end|>", "\n<|im_start|>assistant\n<think>\n\n</think>\n\n"]


@pytest.mark.parametrize(("line", "pieces"), [
    ("14 -3.7 medium 12 x1\n", ["14", " -", "3.7", " medium ", "12", " x1\n"]),
    ("Wear x2.9, tyres last 10.", ["Wear", " x2.9", ", tyres last ", "10", "."]),
    ("fuel +.45; in 23.6 s", ["fuel +", ".4", "5", "; in ", "23", ".6", " s"]),
])
def test_a_number_is_one_piece_with_its_tenth_and_line_end(line, pieces):
    from tokenizers import Regex, pre_tokenizers

    split = pre_tokenizers.Split(Regex(SPLIT_PATTERN), "isolated")
    assert [piece for piece, _ in split.pre_tokenize_str(line)] == pieces


def test_an_unknown_profile_names_the_valid_ones():
    with pytest.raises(UnknownProfile, match="gpt.*F1_PROFILE.*tiny, smollm2, qwen3-0.6b, qwen3-4b"):
        profile_of("gpt")


def test_settings_of_the_large_profiles():
    large = PROFILES["qwen3-4b"]
    assert (large.lora.rank, large.bf16, large.grpo.num_generations, large.grpo.steps) == (16, True, 8, 200)
    assert replace(large, name="tiny") != PROFILES["tiny"]
