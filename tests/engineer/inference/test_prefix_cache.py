"""The prefix that a race's prompts share is computed once, and completions are those of whole prompts."""
import torch

from f1_pipelines.engineer.inference.checkpoints import load_engineer
from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.inference.generate import generate
from f1_pipelines.engineer.inference.prefix_cache import PrefixCache
from f1_pipelines.engineer.rollout import batched_rollout
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import race_keys
from f1_pipelines.sim.environment.prompt import opening_of


def laps():
    """Observations of two laps of each of ten races."""
    races = batched_rollout([ScenarioSampler().scenario(*key) for key in race_keys("train", 2)],
                            lambda texts: ["STAY_OUT"] * len(texts))
    return [race.observations[lap].text for race in races for lap in (3, 7)]


def whole(engineer, text):
    """The completion of transformers' own `generate`."""
    tokenizer, prompt = engineer.rendering.tokenizer, engineer.rendering.prompt_ids(text)
    ids = engineer.model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=24,
                                  pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id)
    return ids[0, len(prompt):].tolist()


def test_answers_are_those_of_transformers(student_folder):
    engineer, texts = load_engineer(student_folder), laps()
    wanted = [whole(engineer, text) for text in texts]
    assert len({len(ids) for ids in wanted}) > 1, "some end before others"
    tokenizer = engineer.rendering.tokenizer
    assert generate(engineer.model, [engineer.rendering.prompt_ids(text) for text in texts], tokenizer.pad_token_id,
                    tokenizer.eos_token_id, 24) == wanted
    assert [ids for [ids] in engineer.sample_ids(texts, 1, 0.0)] == wanted, "with prefixes"
    assert [ids for [ids] in engineer.sample_ids(texts[::-1], 1, 0.0)] == wanted[::-1], "with cached prefixes"


def test_a_lap_costs_what_is_new_in_it(student_folder, monkeypatch):
    engineer, texts = load_engineer(student_folder), laps()
    widths, forward = [], type(engineer.model).forward
    monkeypatch.setattr(type(engineer.model), "forward", lambda model, *args, **options: widths.append(
        options["input_ids"].shape[1]) or forward(model, *args, **options))
    engineer.commands(texts[:1])
    widths.clear()
    engineer.commands(texts[1:2])
    opening = engineer.rendering.tokenizer(opening_of(texts[1]), add_special_tokens=False)["input_ids"]
    assert 0 < widths[0] < len(engineer.rendering.prompt_ids(texts[1])) - 0.9 * len(opening)


def test_changed_weights_clear_the_cache(student_folder):
    engineer, texts = load_engineer(student_folder), laps()
    before = engineer.commands(texts)
    with torch.no_grad():
        for weights in engineer.model.parameters():
            weights.mul_(-0.5)
    after = engineer.commands(texts)
    assert after != before
    assert after == Engineer(engineer.model, engineer.rendering, 24).commands(texts)


def test_prefixes_of_finished_races_make_room(student_folder):
    engineer, texts = load_engineer(student_folder), laps()
    n_bytes = PrefixCache(engineer.model, engineer.rendering, 1).lookup(texts[:1])[0].keys_values.nbytes
    cache = PrefixCache(engineer.model, engineer.rendering, 1, max_bytes=3 * n_bytes)
    first = cache.lookup(texts[:4])
    assert [prefix is other for prefix, other in zip(first[::2], first[1::2], strict=True)] == [True, True]
    assert len(first[0].ids) > len(cache.lookup([""])[0].ids)
    late = cache.lookup(texts[4:])
    assert len(late[0].ids) > len(late[-1].ids), "without room for the last, it uses the prefix of all prompts"
    assert late[-1] is cache.lookup([""])[0]
    assert cache.lookup(texts[:1])[0].ids == first[0].ids, "a dropped prefix is computed again"
