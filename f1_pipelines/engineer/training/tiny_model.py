"""A language model from scratch: Qwen3's architecture with fresh weights, and a tokenizer trained on the turns.

Notable choices:
- Text is split into numbers (with their tenth, the "x" of a multiple and the end of the line) and the phrases between
  them, so a lap of a race is about eighty tokens and most commands are one.
- The chat template's constant text between question and answer is one token.
- The chat template is Qwen3's own, as shipped with trl, so a larger Qwen3 gets the same chats.
"""
from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING

from f1_pipelines.engineer.profiles import Architecture

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

END, PAD, START = "<|im_end|>", "<|endoftext|>", "<|im_start|>"
_NUMBER = r"(?: x)?(?:\p{N}?\.\p{N}|\p{N}{1,3})"
SPLIT_PATTERN = rf"{_NUMBER}\n?|[^\p{{N}}\n]+?(?={_NUMBER}|\n|$)\n?|\n+"
_ROLES = ("system\n", "user\n", "assistant\n", "\n\n")  # text of the chat template outside the literals
_ANSWER = f"\n{START}assistant\n<think>\n\n</think>\n\n"  # between question and answer
_LITERAL = (_ANSWER, "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")


def train_tokenizer(texts: Iterable[str], architecture: Architecture) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer on these texts."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT_PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    bpe.decoder = decoders.ByteLevel()
    # The roles are repeated with every text, as in every chat; once only, they would be split into letters.
    bpe.train_from_iterator((piece for text in texts for piece in (*_ROLES, text)), trainers.BpeTrainer(
        vocab_size=architecture.vocabulary - len(_LITERAL), special_tokens=[PAD, START, END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    bpe.add_tokens([AddedToken(text, special=False, normalized=False) for text in _LITERAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=END, pad_token=PAD, padding_side="left", clean_up_tokenization_spaces=False,
        chat_template=(files("trl") / "chat_templates" / "qwen3.jinja").read_text())


def fresh_model(tokenizer: PreTrainedTokenizerFast, architecture: Architecture, seed: int) -> PreTrainedModel:
    """Create a Qwen3 model with random weights drawn from the seed."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=-(-len(tokenizer) // 64) * 64, hidden_size=architecture.hidden,
        num_hidden_layers=architecture.layers, num_attention_heads=architecture.heads,
        num_key_value_heads=architecture.kv_heads, head_dim=architecture.head_dim,
        intermediate_size=architecture.feed_forward, tie_word_embeddings=True,
        max_position_embeddings=architecture.context, rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model
