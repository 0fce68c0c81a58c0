"""The faster computation on a CPU has the same results."""
import pytest
import torch

from f1_pipelines.engineer.inference.checkpoints import load_engineer
from f1_pipelines.engineer.inference.cpu import attention, use_fast_matmul

HEADS = {"each its own keys": (4, 4), "two share keys": (4, 2), "all share keys": (4, 1)}


@pytest.mark.parametrize(("heads", "groups"), HEADS.values(), ids=HEADS)
def test_attention_is_that_of_torch(heads, groups):
    draws = torch.Generator().manual_seed(1)
    rows, new, tokens, size = 3, 5, 9, 8
    query, key, value = (torch.randn(rows, n, length, size, generator=draws, requires_grad=True)
                         for n, length in ((heads, new), (groups, tokens), (groups, tokens)))
    seen = torch.ones(rows, 1, new, tokens).tril(tokens - new).bool()
    seen[1, ..., :3] = False  # a row that was padded
    mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
    mixed, _ = attention(None, query, key, value, mask, size**-0.5)
    wanted = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=seen, enable_gqa=True)
    torch.testing.assert_close(mixed, wanted.transpose(1, 2))
    for mine, theirs in zip(torch.autograd.grad((mixed**2).sum(), (query, key, value)),
                            torch.autograd.grad((wanted**2).sum(), (query, key, value)), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_row_of_padding_is_no_infinity_in_bfloat16():
    query, key = torch.randn(2, 4, 3, 8).bfloat16(), torch.randn(2, 2, 3, 8).bfloat16()
    mask = torch.full((2, 1, 3, 3), torch.finfo(torch.float32).min)
    assert attention(None, query, key, key, mask, 0.3)[0].isfinite().all()


def test_attention_without_a_mask_sees_all():
    query, key = torch.randn(2, 4, 3, 8), torch.randn(2, 2, 7, 8)
    torch.testing.assert_close(attention(None, query, key, key, None, 0.25)[0].transpose(1, 2),
                               torch.nn.functional.scaled_dot_product_attention(query, key, key, scale=0.25,
                                                                                enable_gqa=True))


def test_a_model_has_the_logits_of_other_attention(student_folder):
    engineer = load_engineer(student_folder)
    ids = torch.tensor([engineer.rendering.prompt_ids("We 4 P3, 12 to go")])
    with torch.inference_mode(), use_fast_matmul():
        here = engineer.model(ids).logits
    engineer.model.set_attn_implementation("sdpa")
    with torch.inference_mode():
        torch.testing.assert_close(here, engineer.model(ids).logits, atol=1e-4, rtol=1e-4)


def test_quick_products_are_products_of_float32():
    draws = torch.Generator().manual_seed(2)
    one, other = torch.randn(512, 128, generator=draws), torch.randn(128, 256, generator=draws)
    with use_fast_matmul():
        quick = one @ other
    torch.testing.assert_close(quick.double(), one.double() @ other.double(), atol=1e-4, rtol=1e-4)


def test_products_are_quick_within_only():
    before = torch.backends.mkldnn.matmul.fp32_precision
    with pytest.raises(RuntimeError), use_fast_matmul():
        with use_fast_matmul(False):
            assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
        raise RuntimeError
    assert torch.backends.mkldnn.matmul.fp32_precision == before
