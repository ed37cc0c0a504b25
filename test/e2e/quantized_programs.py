"""Random quantized programs: a seed gives a chain of a dozen steps, each followed by a grid that fits what PyTorch computes.

Scales and zero points are drawn; every step is one that the integer profile has. `Draw(seed).module()` returns all values,
so that each step can be judged by what it made of its own operands.
"""
import random

import torch
from test_tosa_int import Weights, grid
from torch import nn
from torch.nn import functional as F

UNARY = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "hardswish": F.hardswish, "gelu": F.gelu, "relu": F.relu, "elu": F.elu,
         "abs": torch.abs, "neg": torch.neg, "silu": F.silu, "softplus": F.softplus, "leaky": lambda x: F.leaky_relu(x, 0.1),
         "clamp": lambda x: x.clamp(-1, 0.5), "shrink": lambda x: x * 0.3 + 0.1, "square": lambda x: x * x}
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum}


class Program(nn.Module):
    def __init__(self, steps, layers, first, dtype):
        super().__init__()
        self.steps, self.layers, self.first, self.dtype = steps, nn.ModuleDict(layers), first, dtype

    def step(self, i, values):
        """The result of step i, given the values before it."""
        function, operands, g = self.steps[i]
        return grid(function(*(self.layers[o] if isinstance(o, str) else values[o] for o in operands)), *g, self.dtype)

    def forward(self, *inputs):
        values = [grid(x, *g, self.dtype) for x, g in zip(inputs, self.first)]
        for i in range(len(self.steps)):
            values.append(self.step(i, values))
        return tuple(values[len(inputs):])


class Draw:
    def __init__(self, seed, length=12):
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.dtype = torch.int16 if self.random.random() < 0.25 else torch.int8
        shape = (1, self.random.choice((2, 3, 4, 8)), self.random.choice((6, 8, 9)), self.random.choice((6, 7, 8)))
        self.inputs = [torch.randn(shape), torch.randn(shape)]
        self.steps, self.layers, self.text = [], {}, [f"{self.dtype} {shape}"]
        self.grids = [self.fit(x) for x in self.inputs]
        self.values = [grid(x, *g, self.dtype) for x, g in zip(self.inputs, self.grids)]
        self.first = list(self.grids)
        kinds = (self.unary, self.unary, self.binary, self.binary, self.convolve, self.pool, self.move, self.move, self.reduce, self.product)
        while len(self.steps) < length:
            self.random.choice(kinds)()

    def fit(self, x):
        """A grid that covers the values: (scale, zero point)."""
        info = torch.iinfo(self.dtype)
        low, high = min(float(x.min()), 0.0), max(float(x.max()), 1e-2)
        if self.dtype == torch.int16:
            return max(-low, high) / info.max, 0
        scale = (high - low) / 255 * self.random.choice((1, 1, 1.1, 0.8))
        return scale, max(info.min, min(info.max, round(info.min - low / scale)))

    def module(self):
        return Program(self.steps, self.layers, self.first, self.dtype).eval()

    def pick(self, rank=0):
        fitting = [i for i, v in enumerate(self.values) if v.ndim >= rank]
        return self.random.choice(fitting[-4:] if self.random.random() < 0.7 else fitting) if fitting else None

    def step(self, text, function, operands, same=None, always=False):
        """`same`: the value whose grid the result keeps, three times out of four or always."""
        given = [self.layers[o] if isinstance(o, str) else self.values[o] for o in operands]
        with torch.no_grad():
            made = function(*given)
        if not 0 < made.numel() <= 4096 or made.ndim > 5 or not made.abs().max() < 1e3:
            return
        g = self.grids[same] if same is not None and (always or self.random.random() < 0.75) else self.fit(made)
        self.steps.append((function, operands, g))
        self.text.append(f"v{len(self.values)} = {text}{operands} : {list(made.shape)} {g}")
        self.grids.append(g)
        self.values.append(grid(made, *g, self.dtype))

    def unary(self):
        name = self.random.choice([*UNARY])
        i = self.pick()
        self.step(name, UNARY[name], [i], i if name in ("relu", "clamp") else None)

    def binary(self):
        a = self.pick()
        fitting = [i for i, v in enumerate(self.values) if all(m == n or 1 in (m, n) for m, n in zip(v.shape[::-1], self.values[a].shape[::-1]))]
        name = self.random.choice([*BINARY])
        self.step(name, BINARY[name], [a, self.random.choice(fitting)])

    def convolve(self):
        i = self.pick(4)
        if i is None or self.values[i].ndim != 4:
            return
        channels, kernel = self.values[i].shape[1], self.random.choice((1, 3))
        if min(self.values[i].shape[2:]) < kernel:
            return
        groups = self.random.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
        shape = (groups * self.random.choice((1, 2)), channels // groups, kernel, kernel)
        name = f"layer{len(self.layers)}"
        self.layers[name] = Weights(shape, self.grids[i][0], self.random.random() < 0.7)
        stride, pad, relu = self.random.choice((1, 1, 2)), self.random.choice((0, kernel // 2)), self.random.random() < 0.4

        def apply(layer, x):
            y = F.conv2d(x, *layer(), stride=stride, padding=pad, groups=groups)
            return F.relu(y) if relu else y
        self.step(f"conv {shape} stride {stride} pad {pad} groups {groups} relu {relu}", apply, [name, i])

    def pool(self):
        i = self.pick(4)
        if i is None or self.values[i].ndim != 4 or min(self.values[i].shape[2:]) < 3:
            return
        f, k, s = self.random.choice((F.avg_pool2d, F.max_pool2d)), self.random.choice((2, 3)), self.random.choice((1, 2))
        self.step(f"{f.__name__} {k} {s}", lambda x: f(x, k, s), [i], i, f is F.avg_pool2d)  # quantizers keep a mean's grid

    def move(self):
        i = self.pick(2)
        if i is None:
            return
        shape = self.values[i].shape
        order = self.random.sample(range(len(shape)), len(shape))
        d, n = self.random.randrange(len(shape)), self.random.randint(1, 2)
        name, f = self.random.choice((
            (f"permute {order}", lambda x: x.permute(order)), ("flatten", lambda x: x.reshape(x.shape[0], -1)),
            (f"merge", lambda x: x.reshape(-1, x.shape[-1])), (f"slice {d}", lambda x: x.narrow(d, min(n, x.shape[d] - 1), max(1, x.shape[d] - n))),
            (f"pad {n}", lambda x: F.pad(x, (n, 0, 0, n))), (f"flip {d}", lambda x: x.flip(d)), (f"repeat {d}", lambda x: torch.cat([x, x], d)),
            ("unsqueeze", lambda x: x.unsqueeze(1)), (f"select {d}", lambda x: x.select(d, 0))))
        self.step(name, f, [i], i)

    def reduce(self):
        i = self.pick(2)
        if i is None:
            return
        d, keep = self.random.randrange(self.values[i].ndim), self.random.random() < 0.5
        name, f = self.random.choice((("sum", lambda x: x.sum(d, keepdim=keep)), ("mean", lambda x: x.mean(d, keepdim=keep)),
                                      ("amax", lambda x: x.amax(d, keepdim=keep))))
        self.step(f"{name} {d} {keep}", f, [i], i if name == "amax" else None)

    def product(self):
        i = self.pick(3)
        if i is not None and self.values[i].ndim in (3, 4):
            self.step("x @ x.T", lambda x: x @ x.transpose(-1, -2), [i])
