#!/usr/bin/env python3
"""Networks that people deploy, with random weights and small sizes: name -> (module factory, inputs).

usage: real_models.py FOLDER [NAME...]    exports each to FOLDER/<name>/{model.pt2,core.pt2,inputs.npz,expected.npz}
"""
import hashlib
import multiprocessing
import os
import pathlib
import shutil
import sys

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models_language as language  # noqa: E402
import models_vision as vision  # noqa: E402
from make_models import run  # noqa: E402

IMAGE = lambda: (torch.rand(1, 3, 32, 32),)
TOKENS = lambda *shape: torch.randint(1, 30, shape)
HEADS = lambda length: torch.randn(1, 2, length, 8)


def cached_inputs():
    """One token after five: mask, position, and keys and values of two layers."""
    return (TOKENS(1, 1), torch.zeros(1, 1, 1, 6), torch.tensor([[5]]), *(HEADS(5) for _ in range(4)))


def padded(*shape):
    mask = torch.ones(shape, dtype=torch.int64)
    mask[:, -2:] = 0
    return mask


def text_with_image():
    visual = torch.zeros(1, 8, dtype=torch.bool)
    visual[:, 2:6] = True
    return TOKENS(1, 8), torch.arange(8).repeat(3, 1, 1) // torch.tensor([1, 2, 3]).view(3, 1, 1), torch.randn(4, 16), visual


MODELS = {
    "resnet18": (vision.ResNet18, IMAGE),
    "mobilenet_v2": (vision.MobileNetV2, IMAGE),
    "mobilenet_v3": (vision.MobileNetV3, IMAGE),
    "efficientnet": (vision.EfficientNet, IMAGE),
    "convnext": (vision.ConvNeXt, IMAGE),
    "vit": (vision.ViT, IMAGE),
    "deit": (lambda: vision.ViT(distilled=True), IMAGE),
    "swin": (vision.Swin, IMAGE),
    "squeezenet": (vision.SqueezeNet, lambda: (torch.rand(1, 3, 64, 64),)),
    "inception": (vision.Inception, lambda: (torch.rand(1, 3, 56, 56),)),
    "unet": (vision.UNet, IMAGE),
    "deeplab": (vision.DeepLab, IMAGE),
    "lstm": (language.LSTM, lambda: (TOKENS(2, 5) % 20,)),
    "gru": (language.GRU, lambda: (torch.randn(5, 2, 8), torch.randn(2, 2, 6))),
    "bert": (language.Bert, lambda: (TOKENS(2, 8), padded(2, 8), torch.zeros(2, 8, dtype=torch.int64))),
    "gpt2": (language.GPT2, lambda: (TOKENS(1, 7),)),
    "llama": (language.Llama, lambda: (TOKENS(1, 6),)),
    "llama_cached": (lambda: language.Llama(cached=True), cached_inputs),
    "qwen2": (lambda: language.Llama(bias=True), lambda: (TOKENS(1, 6),)),
    "qwen2_cached": (lambda: language.Llama(cached=True, bias=True), cached_inputs),
    "qwen3": (lambda: language.Llama(qk_norm=True), lambda: (TOKENS(1, 6),)),
    "qwen3_cached": (lambda: language.Llama(cached=True, qk_norm=True), cached_inputs),
    "qwen3_moe": (lambda: language.Llama(qk_norm=True, experts=True), lambda: (TOKENS(1, 6),)),
    "t5": (language.T5, lambda: (TOKENS(2, 7), padded(2, 7), TOKENS(2, 5))),
    "whisper_encoder": (language.WhisperEncoder, lambda: (torch.randn(1, 8, 20),)),
    "whisper_decoder": (language.WhisperDecoder, lambda: (TOKENS(1, 5), torch.randn(1, 10, 16))),
    "qwen3vl_vision": (language.Qwen3VLVision, lambda: (torch.randn(48, 96),)),
    "qwen3vl_text": (language.Qwen3VLText, text_with_image),
    "mamba": (language.Mamba, lambda: (torch.randn(1, 6, 8),)),
}


def build(name):
    """The module in eval mode with fresh scales and statistics, and its inputs; the same on every call."""
    torch.manual_seed(sum(map(ord, name)))
    factory, inputs = MODELS[name]
    module = factory().eval()
    for key, tensor in (*module.named_parameters(), *module.named_buffers()):
        if tensor.is_floating_point() and tensor.ndim == 1 and "frequencies" not in key:
            tensor.data.uniform_(0.5, 1.5)
    return module, inputs()


def export(folder, name):
    """model.pt2 as torch.export.export gives it, core.pt2 after run_decompositions(), inputs and PyTorch's outputs."""
    torch.set_num_threads(1)
    folder = pathlib.Path(folder) / name
    folder.mkdir(parents=True, exist_ok=True)
    module, inputs = build(name)
    program = torch.export.export(module, inputs)
    torch.export.save(program, str(folder / "model.pt2"))
    torch.export.save(program.run_decompositions(), str(folder / "core.pt2"))
    np.savez(folder / "inputs.npz", **{f"in{i}": t.numpy() for i, t in enumerate(inputs)})
    np.savez(folder / "expected.npz", **run(module, inputs))


def export_all(folder):
    """Nothing is done when the folder was made by these very scripts and this torch."""
    here, folder = pathlib.Path(__file__).resolve().parent, pathlib.Path(folder)
    text = b"".join((here / n).read_bytes() for n in ("real_models.py", "models_language.py", "models_vision.py"))
    stamp, version = folder / "made-by", hashlib.sha256(text + torch.__version__.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == version:
        return
    shutil.rmtree(folder, ignore_errors=True)
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        pool.starmap(export, [(folder, name) for name in MODELS], chunksize=1)
    stamp.write_text(version)


if __name__ == "__main__":
    for chosen in sys.argv[2:] or MODELS:
        export(sys.argv[1], chosen)
