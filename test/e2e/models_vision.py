"""Vision networks of the real-model test, built from torch.nn alone: every layer kind of the original, few channels."""
import torch
from torch import nn
from torch.nn import functional as F


def conv_bn(inp, out, kernel, act=nn.ReLU, **more):
    layers = [nn.Conv2d(inp, out, kernel, bias=False, **more), nn.BatchNorm2d(out)]
    return nn.Sequential(*layers, *([act(inplace=True)] if act else []))


class BasicBlock(nn.Module):
    def __init__(self, inp, out, stride):
        super().__init__()
        self.one = conv_bn(inp, out, 3, stride=stride, padding=1)
        self.two = conv_bn(out, out, 3, act=None, padding=1)
        self.down = conv_bn(inp, out, 1, act=None, stride=stride) if stride != 1 or inp != out else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.two(self.one(x))
        y += self.down(x)
        return self.relu(y)


class ResNet18(nn.Module):
    def __init__(self, width=8, classes=10):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, width, 7, stride=2, padding=3), nn.MaxPool2d(3, 2, 1))
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        self.layers = nn.Sequential(*[nn.Sequential(BasicBlock(a, b, 1 if i == 0 else 2), BasicBlock(b, b, 1))
                                      for i, (a, b) in enumerate(zip(sizes, sizes[1:]))])
        self.pool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8 * width, classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.layers(self.stem(x))), 1))


class SqueezeExcite(nn.Module):
    def __init__(self, channels, squeezed, act, gate):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.act, self.gate = act(), gate()

    def forward(self, x):
        return self.gate(self.fc2(self.act(self.fc1(self.pool(x))))) * x


class InvertedResidual(nn.Module):
    """MobileNetV2's block; with `squeeze` that of V3, with SiLU that of EfficientNet."""

    def __init__(self, inp, out, expand, kernel=3, stride=1, act=nn.ReLU6, squeeze=None):
        super().__init__()
        hidden = inp * expand
        layers = [conv_bn(inp, hidden, 1, act)] if expand != 1 else []
        layers.append(conv_bn(hidden, hidden, kernel, act, stride=stride, padding=kernel // 2, groups=hidden))
        if squeeze:
            layers.append(SqueezeExcite(hidden, max(2, hidden // 4), *squeeze))
        self.layers = nn.Sequential(*layers, conv_bn(hidden, out, 1, None))
        self.residual = stride == 1 and inp == out

    def forward(self, x):
        return x + self.layers(x) if self.residual else self.layers(x)


class MobileNetV2(nn.Module):
    """`stages`: expansion, channels, blocks and first stride of each, as in the paper."""
    PAPER = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def __init__(self, stages=((1, 8, 1, 1), (6, 12, 2, 2), (6, 16, 1, 2)), first=8, last=32, classes=10):
        super().__init__()
        blocks, inp = [], first
        for expand, out, count, stride in stages:
            for i in range(count):
                blocks.append(InvertedResidual(inp, out, expand, stride=stride if i == 0 else 1))
                inp = out
        self.features = nn.Sequential(conv_bn(3, first, 3, nn.ReLU6, stride=2, padding=1), *blocks,
                                      conv_bn(inp, last, 1, nn.ReLU6))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(torch.flatten(x, 1))


class MobileNetV3(nn.Module):
    def __init__(self):
        super().__init__()
        squeeze = (nn.ReLU, nn.Hardsigmoid)
        self.features = nn.Sequential(
            conv_bn(3, 8, 3, nn.Hardswish, stride=2, padding=1),
            InvertedResidual(8, 8, 1, stride=2, act=nn.ReLU, squeeze=squeeze),
            InvertedResidual(8, 12, 4, act=nn.ReLU), InvertedResidual(12, 12, 4, 5, act=nn.Hardswish, squeeze=squeeze),
            InvertedResidual(12, 16, 6, 5, 2, nn.Hardswish, squeeze), conv_bn(16, 32, 1, nn.Hardswish))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Linear(32, 24), nn.Hardswish(inplace=True), nn.Dropout(0.2, inplace=True),
                                        nn.Linear(24, 10))

    def forward(self, x):
        return self.classifier(torch.flatten(self.pool(self.features(x)), 1))


class EfficientNet(nn.Module):
    def __init__(self):
        super().__init__()
        squeeze = (lambda: nn.SiLU(inplace=True), nn.Sigmoid)
        block = lambda *a, **k: InvertedResidual(*a, act=nn.SiLU, squeeze=squeeze, **k)
        fused = nn.Sequential(conv_bn(8, 16, 3, nn.SiLU, padding=1), conv_bn(16, 8, 1, None))  # V2's fused block
        self.features = nn.Sequential(conv_bn(3, 8, 3, nn.SiLU, stride=2, padding=1), fused, block(8, 8, 1),
                                      block(8, 12, 6, kernel=5, stride=2), block(12, 12, 6, kernel=5),
                                      block(12, 16, 6, stride=2), conv_bn(16, 32, 1, nn.SiLU))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.2, inplace=True), nn.Linear(32, 10))

    def forward(self, x):
        return self.classifier(torch.flatten(self.pool(self.features(x)), 1))


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        x = F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(dim, dim, 7, padding=3, groups=dim), nn.LayerNorm(dim, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.scale = nn.Parameter(torch.ones(dim, 1, 1))

    def forward(self, x):
        y = self.mlp(self.norm(self.conv(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)
        return x + self.scale * y


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 4, 4), LayerNorm2d(8, eps=1e-6), ConvNeXtBlock(8), LayerNorm2d(8),
                                      nn.Conv2d(8, 16, 2, 2), ConvNeXtBlock(16))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Sequential(LayerNorm2d(16, eps=1e-6), nn.Flatten(1), nn.Linear(16, 10))

    def forward(self, x):
        return self.head(self.pool(self.features(x)))


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, wider=2):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, wider * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(wider * dim, dim))

    def forward(self, x):
        y = self.ln1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class ViT(nn.Module):
    """`distilled`: DeiT's second token and head."""

    def __init__(self, distilled=False, dim=32, heads=4, depth=2, wider=2, patch=8, patches=16, classes=10):
        super().__init__()
        self.tokens = 2 if distilled else 1
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.cls = nn.Parameter(torch.randn(1, self.tokens, dim) * 0.1)
        self.position = nn.Parameter(torch.randn(1, patches + self.tokens, dim) * 0.1)
        self.blocks, self.norm = nn.Sequential(*(EncoderBlock(dim, heads, wider) for _ in range(depth))), nn.LayerNorm(dim)
        self.heads = nn.ModuleList(nn.Linear(dim, classes) for _ in range(self.tokens))

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), dim=1) + self.position
        x = self.norm(self.blocks(x))
        logits = [head(x[:, i]) for i, head in enumerate(self.heads)]
        return logits[0] if len(logits) == 1 else (logits[0] + logits[1]) / 2


def window_partition(x, size):
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, c)


class SwinBlock(nn.Module):
    def __init__(self, dim, heads, window, shift, resolution):
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.1)
        grid = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        relative = (grid[:, :, None] - grid[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", relative[:, :, 0] * (2 * window - 1) + relative[:, :, 1])

    def mask(self, h, w, x):
        regions = x.new_zeros((h, w))
        bounds = ((0, -self.window), (-self.window, -self.shift), (-self.shift, None))
        for i, rows in enumerate(bounds):
            for j, columns in enumerate(bounds):
                regions[rows[0]:rows[1], columns[0]:columns[1]] = 3 * i + j
        regions = window_partition(regions[None, :, :, None], self.window).squeeze(-1)
        mask = regions.unsqueeze(1) - regions.unsqueeze(2)
        return mask.masked_fill(mask != 0, float(-100.0)).masked_fill(mask == 0, 0.0)

    def forward(self, x):
        b, h, w, c = x.shape
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = window_partition(y, self.window)
        n, t, _ = y.shape
        q, k, v = self.qkv(y).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        scores = scores + self.table[self.index.view(-1)].view(t, t, -1).permute(2, 0, 1).contiguous().unsqueeze(0)
        if self.shift:
            mask = self.mask(h, w, x)
            scores = scores.view(b, mask.shape[0], self.heads, t, t) + mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(-1, self.heads, t, t)
        y = self.proj((F.softmax(scores, -1) @ v).transpose(1, 2).reshape(n, t, c))
        y = y.view(b, h // self.window, w // self.window, self.window, self.window, c)
        y = y.permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.reduce = nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        x = F.pad(x, (0, 0, 0, x.shape[2] % 2, 0, x.shape[1] % 2))
        parts = [x[..., i::2, j::2, :] for j in (0, 1) for i in (0, 1)]
        return self.reduce(self.norm(torch.cat(parts, -1)))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.norm = nn.Conv2d(3, 16, 4, 4), nn.LayerNorm(16)
        self.blocks = nn.Sequential(SwinBlock(16, 2, 4, 0, 8), SwinBlock(16, 2, 4, 2, 8), PatchMerging(16),
                                    SwinBlock(32, 4, 4, 0, 4))
        self.last, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x):
        x = self.blocks(self.norm(self.patch(x).permute(0, 2, 3, 1)))
        return self.head(self.last(x).permute(0, 3, 1, 2).mean((2, 3)))


class Fire(nn.Module):
    def __init__(self, inp, squeeze, out):
        super().__init__()
        self.squeeze, self.relu = nn.Conv2d(inp, squeeze, 1), nn.ReLU(inplace=True)
        self.one, self.three = nn.Conv2d(squeeze, out, 1), nn.Conv2d(squeeze, out, 3, padding=1)

    def forward(self, x):
        x = self.relu(self.squeeze(x))
        return torch.cat([self.relu(self.one(x)), self.relu(self.three(x))], 1)


class SqueezeNet(nn.Module):
    def __init__(self):
        super().__init__()
        pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)
        self.features = nn.Sequential(nn.Conv2d(3, 8, 7, 2), nn.ReLU(inplace=True), pool(), Fire(8, 4, 8), Fire(16, 4, 8),
                                      pool(), Fire(16, 4, 16), pool(), Fire(32, 8, 16))
        self.classifier = nn.Sequential(nn.Dropout(0.5), nn.Conv2d(32, 10, 1), nn.ReLU(inplace=True),
                                        nn.AdaptiveAvgPool2d((1, 1)))

    def forward(self, x):
        return torch.flatten(self.classifier(self.features(x)), 1)


class InceptionBlock(nn.Module):
    def __init__(self, inp):
        super().__init__()
        self.one = conv_bn(inp, 4, 1)
        self.five = nn.Sequential(conv_bn(inp, 4, 1), conv_bn(4, 4, 5, padding=2))
        self.seven = nn.Sequential(conv_bn(inp, 4, 1), conv_bn(4, 4, (1, 7), padding=(0, 3)), conv_bn(4, 4, (7, 1), padding=(3, 0)))
        self.split = conv_bn(inp, 4, 1)
        self.left, self.right = conv_bn(4, 4, (1, 3), padding=(0, 1)), conv_bn(4, 4, (3, 1), padding=(1, 0))
        self.pool = conv_bn(inp, 4, 1)
        self.reduce = conv_bn(24, 16, 3, stride=2)

    def forward(self, x):
        s = self.split(x)
        pooled = self.pool(F.avg_pool2d(x, 3, 1, 1))
        x = torch.cat([self.one(x), self.five(x), self.seven(x), torch.cat([self.left(s), self.right(s)], 1), pooled], 1)
        return torch.cat([self.reduce(x), F.max_pool2d(x, 3, 2)], 1)


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv_bn(3, 8, 3, stride=2), conv_bn(8, 8, 3), conv_bn(8, 8, 3, padding=1),
                                      nn.MaxPool2d(3, 2), InceptionBlock(8), InceptionBlock(40))
        self.pool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(40, 10)

    def forward(self, x):
        # transform_input: each channel is normalized on its own
        channels = [x[:, i].unsqueeze(1) * (0.458 / 0.5) + (m - 0.5) / 0.5 for i, m in enumerate((0.485, 0.456, 0.406))]
        return self.fc(torch.flatten(self.pool(self.features(torch.cat(channels, 1))), 1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        double = lambda a, b: nn.Sequential(conv_bn(a, b, 3, padding=1), conv_bn(b, b, 3, padding=1))
        self.down1, self.down2, self.bottom = double(3, 8), double(8, 16), double(16, 32)
        self.up2, self.up1 = nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 3, 2, 1, 1)
        self.join2, self.join1 = double(32, 16), double(16, 8)
        self.head = nn.Conv2d(8, 3, 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(F.max_pool2d(one, 2))
        y = self.up2(self.bottom(F.max_pool2d(two, 2)))
        y = self.up1(self.join2(torch.cat([two, y], 1)))
        return self.head(self.join1(torch.cat([one, y], 1))).softmax(1)


class DeepLab(nn.Module):
    """Segmentation with dilated convolutions, image pooling and bilinear and nearest resizing."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 8, 3, stride=2, padding=1), conv_bn(8, 16, 3, stride=2, padding=1))
        self.aspp = nn.ModuleList([conv_bn(16, 8, 1), *(conv_bn(16, 8, 3, padding=r, dilation=r) for r in (2, 3))])
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), conv_bn(16, 8, 1))
        self.project, self.low, self.head = conv_bn(32, 8, 1), conv_bn(8, 4, 1), nn.Conv2d(12, 3, 3, padding=1)

    def forward(self, x):
        low = self.stem[0](x)
        y = self.stem[1](low)
        pooled = F.interpolate(self.pool(y), size=y.shape[-2:], mode="bilinear", align_corners=False)
        y = self.project(torch.cat([*(branch(y) for branch in self.aspp), pooled], 1))
        y = F.interpolate(y, scale_factor=2.0, mode="nearest")
        y = self.head(torch.cat([y, self.low(low)], 1))
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=True).argmax(1), y
