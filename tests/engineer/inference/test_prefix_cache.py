"""A race's shared prefix is computed once, and completions equal those of whole prompts."""
import torch

from f1_pipelines.engineer.inference.checkpoints import load_engineer
from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.inference.generate import generate
from f1_pipelines.engineer.inference.prefix_cache import PrefixCache
from f1_pipelines.engineer.rollout import batched_rollout
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import race_keys
from f1_pipelines.sim.environment.prompt import opening_of


def observation_texts():
    """Texts of the observations of two laps of each of ten races."""
    races = batched_rollout([ScenarioSampler().scenario(*key) for key in race_keys("train", 2)],
                            lambda texts: ["STAY_OUT"] * len(texts))
    return [race.observations[lap].text for race in races for lap in (3, 7)]


def transformers_completion(engineer, text):
    """The completion of transformers' own `generate`."""
    tokenizer, prompt = engineer.rendering.tokenizer, engineer.rendering.prompt_ids(text)
    ids = engineer.model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=24,
                                  pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id)
    return ids[0, len(prompt):].tolist()


def test_completions_equal_those_of_transformers(student_folder):
    engineer, texts = load_engineer(student_folder), observation_texts()
    expected = [transformers_completion(engineer, text) for text in texts]
    assert len({len(ids) for ids in expected}) > 1, "lengths differ"
    tokenizer = engineer.rendering.tokenizer
    assert generate(engineer.model, [engineer.rendering.prompt_ids(text) for text in texts], tokenizer.pad_token_id,
                    tokenizer.eos_token_id, 24) == expected
    assert [ids for [ids] in engineer.sample_ids(texts, 1, 0.0)] == expected, "with prefixes"
    assert [ids for [ids] in engineer.sample_ids(texts[::-1], 1, 0.0)] == expected[::-1], "with cached prefixes"


def test_a_lap_processes_only_its_new_tokens(student_folder, monkeypatch):
    engineer, texts = load_engineer(student_folder), observation_texts()
    widths, forward = [], type(engineer.model).forward
    monkeypatch.setattr(type(engineer.model), "forward", lambda model, *args, **options: widths.append(
        options["input_ids"].shape[1]) or forward(model, *args, **options))
    engineer.commands(texts[:1])
    widths.clear()
    engineer.commands(texts[1:2])
    opening = engineer.rendering.tokenizer(opening_of(texts[1]), add_special_tokens=False)["input_ids"]
    assert 0 < widths[0] < len(engineer.rendering.prompt_ids(texts[1])) - 0.9 * len(opening)


def test_changed_weights_clear_the_cache(student_folder):
    engineer, texts = load_engineer(student_folder), observation_texts()
    before = engineer.commands(texts)
    with torch.no_grad():
        for weights in engineer.model.parameters():
            weights.mul_(-0.5)
    after = engineer.commands(texts)
    assert after != before
    assert after == Engineer(engineer.model, engineer.rendering, 24).commands(texts)


def test_a_full_cache_drops_the_prefixes_of_finished_races(student_folder):
    engineer, texts = load_engineer(student_folder), observation_texts()
    n_bytes = PrefixCache(engineer.model, engineer.rendering, 1).lookup(texts[:1])[0].keys_values.nbytes
    cache = PrefixCache(engineer.model, engineer.rendering, 1, max_bytes=3 * n_bytes)
    first = cache.lookup(texts[:4])
    assert [prefix is other for prefix, other in zip(first[::2], first[1::2], strict=True)] == [True, True]
    assert len(first[0].ids) > len(cache.lookup([""])[0].ids)
    later = cache.lookup(texts[4:])
    assert len(later[0].ids) > len(later[-1].ids), "the last one does not fit and uses the prefix of all prompts"
    assert later[-1] is cache.lookup([""])[0]
    assert cache.lookup(texts[:1])[0].ids == first[0].ids, "a dropped prefix is computed again"
