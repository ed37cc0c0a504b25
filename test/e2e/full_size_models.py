"""Five networks at the sizes that their papers give their layers: name -> (module factory, inputs). Weights are random.

The Llama block is Llama 3.2 1B's, DeiT-tiny is whole.
"""
import models_language as language
import models_vision as vision
import torch
from torch import nn


class LlamaBlock(nn.Module):
    def __init__(self, dim=2048, heads=32, groups=8, size=64, hidden=8192):
        super().__init__()
        self.layer = language.DecoderLayer(dim, heads, groups, mlp=language.SwiGLU(dim, hidden), size=size)
        self.register_buffer("frequencies", 500000.0 ** -(torch.arange(0, size, 2) / size), persistent=False)

    def forward(self, x):
        angles = torch.arange(x.shape[1])[:, None] * self.frequencies
        both = torch.cat((angles, angles), -1)[None, None]
        return self.layer(x, both.cos(), both.sin(), None)[0]


def deit():
    return vision.ViT(distilled=True, dim=192, heads=3, depth=12, wider=4, patch=16, patches=196, classes=1000)


IMAGE = lambda: (torch.rand(1, 3, 224, 224),)
MODELS = {
    "mobilenet_v2": (lambda: vision.MobileNetV2(vision.MobileNetV2.PAPER, 32, 1280, 1000), IMAGE),
    "resnet18": (lambda: vision.ResNet18(64, 1000), IMAGE),
    "deit": (deit, IMAGE),
    "llama_block": (LlamaBlock, lambda: (torch.randn(1, 8, 2048),)),
    "lstm": (lambda: language.LSTM(128, 256), lambda: (torch.randint(0, 20, (1, 16)),)),
}
