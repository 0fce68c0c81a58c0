"""The faster computation on a CPU has the same results."""
import pytest
import torch

from f1_pipelines.engineer.inference.checkpoints import load_engineer
from f1_pipelines.engineer.inference.cpu import attention, use_fast_matmul

HEADS = {"no shared keys": (4, 4), "two share keys": (4, 2), "all share keys": (4, 1)}


@pytest.mark.parametrize(("heads", "groups"), HEADS.values(), ids=HEADS)
def test_attention_and_its_gradients_equal_those_of_torch(heads, groups):
    rng = torch.Generator().manual_seed(1)
    rows, new, tokens, size = 3, 5, 9, 8
    query, key, value = (torch.randn(rows, n, length, size, generator=rng, requires_grad=True)
                         for n, length in ((heads, new), (groups, tokens), (groups, tokens)))
    visible = torch.ones(rows, 1, new, tokens).tril(tokens - new).bool()
    visible[1, ..., :3] = False  # a padded row
    mask = torch.zeros(visible.shape).masked_fill(~visible, torch.finfo(torch.float32).min)
    output, _ = attention(None, query, key, value, mask, size**-0.5)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=visible, enable_gqa=True)
    torch.testing.assert_close(output, expected.transpose(1, 2))
    for gradient, expected_gradient in zip(torch.autograd.grad((output**2).sum(), (query, key, value)),
                                           torch.autograd.grad((expected**2).sum(), (query, key, value)), strict=True):
        torch.testing.assert_close(gradient, expected_gradient)


def test_a_row_of_padding_is_finite_in_bfloat16():
    query, key = torch.randn(2, 4, 3, 8).bfloat16(), torch.randn(2, 2, 3, 8).bfloat16()
    mask = torch.full((2, 1, 3, 3), torch.finfo(torch.float32).min)
    assert attention(None, query, key, key, mask, 0.3)[0].isfinite().all()


def test_attention_without_a_mask_covers_all_tokens():
    query, key = torch.randn(2, 4, 3, 8), torch.randn(2, 2, 7, 8)
    torch.testing.assert_close(attention(None, query, key, key, None, 0.25)[0].transpose(1, 2),
                               torch.nn.functional.scaled_dot_product_attention(query, key, key, scale=0.25,
                                                                                enable_gqa=True))


def test_logits_equal_those_with_torchs_attention(student_folder):
    engineer = load_engineer(student_folder)
    ids = torch.tensor([engineer.rendering.prompt_ids("We 4 P3, 12 to go")])
    with torch.inference_mode(), use_fast_matmul():
        logits = engineer.model(ids).logits
    engineer.model.set_attn_implementation("sdpa")
    with torch.inference_mode():
        torch.testing.assert_close(logits, engineer.model(ids).logits, atol=1e-4, rtol=1e-4)


def test_fast_matmul_has_the_precision_of_float32():
    rng = torch.Generator().manual_seed(2)
    left, right = torch.randn(512, 128, generator=rng), torch.randn(128, 256, generator=rng)
    with use_fast_matmul():
        product = left @ right
    torch.testing.assert_close(product.double(), left.double() @ right.double(), atol=1e-4, rtol=1e-4)


def test_fast_matmul_ends_with_its_context():
    previous = torch.backends.mkldnn.matmul.fp32_precision
    with pytest.raises(RuntimeError), use_fast_matmul():
        with use_fast_matmul(False):
            assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
        raise RuntimeError
    assert torch.backends.mkldnn.matmul.fp32_precision == previous
