"""Hugging Face's own networks, in small random configurations: exported, converted, and compared with PyTorch in tico's interpreter
and in chute's evaluator. Nothing is downloaded. Skipped where transformers is not installed; to run it,

    python -m venv --system-site-packages venv && venv/bin/pip install transformers
    venv/bin/python -m pytest test/e2e/test_transformers.py
"""
import os

import numpy as np
import oracles
import pytest
import torch
from conftest import chute
from torch import nn

os.environ["HF_HUB_OFFLINE"] = "1"
tr = pytest.importorskip("transformers")

IMAGE = lambda side=32: (torch.rand(1, 3, side, side),)
TOKENS = lambda *shape: (torch.randint(1, 60, shape),)
TEXT = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
GROUPED = TEXT | {"num_key_value_heads": 2, "max_position_embeddings": 64}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "decoder_sparse_step": 1}
VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "image_size": 32, "patch_size": 8}
MODELS = {
    "resnet": ("ResNetModel", "ResNetConfig", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}, IMAGE),
    "mobilenet_v2": ("MobileNetV2Model", "MobileNetV2Config", {"depth_multiplier": 0.25, "image_size": 32}, IMAGE),
    "mobilenet_v1": ("MobileNetV1Model", "MobileNetV1Config", {"depth_multiplier": 0.25, "image_size": 32}, IMAGE),
    "efficientnet": ("EfficientNetModel", "EfficientNetConfig", {
        "image_size": 32, "width_coefficient": 0.25, "depth_coefficient": 0.3, "hidden_dim": 320}, IMAGE),
    "convnext": ("ConvNextModel", "ConvNextConfig", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}, IMAGE),
    "vit": ("ViTModel", "ViTConfig", VIT, IMAGE),
    "deit": ("DeiTModel", "DeiTConfig", VIT, IMAGE),
    "swin": ("SwinModel", "SwinConfig", {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}, IMAGE),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", {
        "num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [8, 16], "patch_sizes": [7, 3], "strides": [4, 2],
        "num_attention_heads": [1, 2], "mlp_ratios": [2, 2], "decoder_hidden_size": 16, "num_labels": 3}, IMAGE),
    "bert": ("BertModel", "BertConfig", TEXT, lambda: TOKENS(2, 8)),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}, lambda: TOKENS(1, 8)),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, lambda: TOKENS(1, 8)),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED, lambda: TOKENS(1, 8)),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", GROUPED | {"head_dim": 8}, lambda: TOKENS(1, 8)),
    "qwen3_moe": ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", GROUPED | {"head_dim": 8} | EXPERTS, lambda: TOKENS(1, 8)),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2}, lambda: TOKENS(1, 8)),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", GROUPED | {"head_dim": 8, "sliding_window": 4}, lambda: TOKENS(1, 8)),
    "t5": ("T5EncoderModel", "T5Config", {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}, lambda: TOKENS(2, 7)),
    "whisper_encoder": ("WhisperModel", "WhisperConfig", {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48, "num_mel_bins": 8, "max_source_positions": 10, "max_target_positions": 16, "vocab_size": 64, "pad_token_id": 0,
        "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}, lambda: (torch.randn(1, 8, 20),)),
    "mamba": ("MambaForCausalLM", "MambaConfig", {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}, lambda: TOKENS(1, 6)),
    "mamba2": ("Mamba2ForCausalLM", "Mamba2Config", {
        "vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4, "num_heads": 4, "head_dim": 8, "n_groups": 1, "chunk_size": 4},
        lambda: TOKENS(1, 6)),
}
# What tico's interpreter has no kernel for.
NO_ORACLE = dict.fromkeys(("qwen3_moe", "mixtral"), "TOPK_V2")


class Only(nn.Module):
    """The part of a network that is exported, called with tensors in order, without a cache; returns tensors."""

    def __init__(self, module, **options):
        super().__init__()
        self.module, self.options = module, options

    def forward(self, *inputs):
        out = self.module(*inputs, return_dict=False, **self.options)
        return tuple(t for t in out if isinstance(t, torch.Tensor))


class Cached(nn.Module):
    """One token after others: keys and values of every layer come in, and go out longer."""

    def __init__(self, module, layers):
        super().__init__()
        self.module, self.layers = module, layers

    def forward(self, token, position, *cache):
        past = tr.DynamicCache(config=self.module.config)
        for i in range(self.layers):
            past.update(cache[2 * i], cache[2 * i + 1], i)
        out = self.module(token, position_ids=position, past_key_values=past, use_cache=True)
        return out.logits, *(t for layer in past.layers for t in (layer.keys, layer.values))


def build(name):
    torch.manual_seed(sum(map(ord, name)))
    kind = name.removesuffix("_cached")
    model, config, settings, inputs = MODELS[kind]
    config = getattr(tr, config)(**settings)
    config._attn_implementation = "sdpa" if hasattr(config, "num_attention_heads") and kind not in ("mamba", "mamba2") else config._attn_implementation
    config._experts_implementation = "batched_mm"  # the others call an operator of transformers' own
    module = getattr(tr, model)(config).eval()
    for key, tensor in module.named_buffers():
        if key.endswith("running_var"):
            tensor.uniform_(0.5, 1.5)
    if name.endswith("_cached"):
        heads = lambda: torch.randn(1, config.num_key_value_heads, 5, 8)
        return Cached(module, 2), (*TOKENS(1, 1), torch.tensor([[5]]), *(heads() for _ in range(4)))
    if name == "whisper_encoder":
        return Only(module.encoder), inputs()
    cache = {"use_cache": False} if hasattr(config, "use_cache") and name != "t5" else {}
    return Only(module, **cache), inputs()


NAMES = [*MODELS, "llama_cached", "qwen2_cached", "qwen3_cached"]


@pytest.mark.parametrize("name", NAMES)
def test_transformers(tmp_path, name):
    torch.set_num_threads(1)
    module, inputs = build(name)
    with torch.no_grad():
        want = [t.numpy() for t in module(*inputs)]
        program = torch.export.export(module, inputs, strict=False)
    torch.export.save(program, str(tmp_path / "model.pt2"))
    circle, given = tmp_path / "model.circle", [t.numpy() for t in inputs]
    chute("convert", tmp_path / "model.pt2", "-o", circle)
    chute("verify", circle)
    np.savez(tmp_path / "in.npz", **{f"in{i}": x for i, x in enumerate(oracles.bind(circle, given))})
    chute("run", circle, "--inputs", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    got, why = oracles.apart(oracles.run_reference, circle, given)
    ran = [("chute", oracles.load(tmp_path / "out.npz", "out"))]
    if name in NO_ORACLE:
        assert got is None and NO_ORACLE[name] in why
    else:
        assert got is not None, why
        ran.append(("tico", got))
    for who, values in ran:
        _, wrong = oracles.difference(values, want, 1e-4, 1e-4)
        assert not wrong, f"{who}: {wrong}"
