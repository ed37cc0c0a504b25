"""Random programs: a seed gives a module of a dozen operators over a few small inputs, the same on every machine.

Values carry their shape and kind while the program is drawn, so every program is legal; magnitudes are kept near one.
"""
import random

import torch
from torch import nn
from torch.nn import functional as F

UNARY = {name: getattr(torch, name) for name in ("relu", "sigmoid", "tanh", "abs", "neg", "sin", "cos", "floor")}
UNARY |= {"silu": F.silu, "gelu": F.gelu, "hardswish": F.hardswish, "square": lambda x: torch.tanh(x).square(),
          "leaky": lambda x: F.leaky_relu(x, 0.1), "relu6": F.relu6, "rsqrt": lambda x: torch.rsqrt(x.abs() + 0.5)}
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum,
          "div": lambda x, y: x / (y.abs() + 1)}
COMPARE = {name: getattr(torch, name) for name in ("lt", "ge", "gt", "le")}
SCALARS = (2, -1, 0.5, 1.5, 3)


class Draw:
    """Draws one step at a time. `values` maps a name to (shape, kind), kind one of float, int, bool."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.values, self.steps, self.inputs, self.parameters = {}, [], [], {}
        for _ in range(self.random.randint(1, 3)):
            shape = tuple(self.random.choice((1, 2, 3, 4, 6)) for _ in range(self.random.choice((1, 2, 3, 4, 4))))
            kind = self.random.choice(("float", "float", "float", "int"))
            self.inputs.append((shape, kind))
            self.values[f"in{len(self.inputs) - 1}"] = (shape, kind)
        while len(self.steps) < 12:
            self.random.choice((self.unary, self.unary, self.binary, self.binary, self.conv, self.scalar, self.reduce, self.reshape, self.permute, self.cat,
                                self.slice, self.linear, self.matmul, self.softmax, self.where, self.norm, self.conv,
                                self.expand, self.inplace, self.cast, self.split))()

    def pick(self, kind=None, rank=0):
        fitting = [n for n, (s, k) in self.values.items() if (kind is None or k == kind) and len(s) >= rank]
        if fitting and self.random.random() < 0.6:  # recent values make programs deep instead of wide
            fitting = fitting[-3:]
        return self.random.choice(fitting) if fitting else None

    def step(self, text, function, operands):
        """Record `function`, run on the shapes only, and name what it gives."""
        given = [self.fake(*self.values[o]) for o in operands]
        with torch.no_grad():
            made = function(*given)
        if made.numel() > 4096 or made.numel() == 0 or made.ndim > 5:
            return
        kind = "bool" if made.dtype == torch.bool else "float" if made.is_floating_point() else "int"
        if made.dtype not in (torch.float32, torch.int64, torch.bool):
            return
        name = f"v{len(self.steps)}"
        self.steps.append((name, function, operands, f"{name} = {text}({', '.join(operands)}) : {tuple(made.shape)} {kind}"))
        self.values[name] = (tuple(made.shape), kind)

    def broadcast(self, x, y):
        return all(a == b or 1 in (a, b) for a, b in zip(self.values[x][0][::-1], self.values[y][0][::-1]))

    @staticmethod
    def fake(shape, kind):
        return {"float": torch.ones(shape), "int": torch.ones(shape, dtype=torch.int64),
                "bool": torch.ones(shape, dtype=torch.bool)}[kind]

    def parameter(self, *shape):
        generator = torch.Generator().manual_seed(self.random.getrandbits(32))
        return torch.randn(shape, generator=generator) * 0.5

    def unary(self):
        if x := self.pick("float"):
            name = self.random.choice(sorted(UNARY))
            self.step(name, UNARY[name], [x])

    def binary(self):
        x, y = self.pick(), self.pick()
        name = self.random.choice(sorted(BINARY) + sorted(COMPARE))
        if self.broadcast(x, y) and "bool" not in (self.values[x][1], self.values[y][1]):
            self.step(name, (BINARY | COMPARE)[name], [x, y])

    def scalar(self):
        x, s = self.pick(), self.random.choice(SCALARS)
        name = self.random.choice(("add", "sub", "mul"))
        if self.values[x][1] != "bool":
            self.step(f"{name} {s}", lambda v, op=getattr(torch, name): op(v, s), [x])

    def reduce(self):
        x = self.pick(self.random.choice(("float", "int")), 1)
        if x:
            rank = len(self.values[x][0])
            dims, keep = self.random.sample(range(-rank, 0), self.random.randint(1, rank)), self.random.random() < 0.5
            name = self.random.choice(("sum", "amax", "amin") + (("mean",) if self.values[x][1] == "float" else ()))
            self.step(f"{name} {dims} {keep}", lambda v, op=getattr(torch, name): op(v, dim=dims, keepdim=keep), [x])

    def reshape(self):
        x = self.pick(rank=1)
        size, count = [], torch.Size(self.values[x][0]).numel()
        for _ in range(self.random.randint(0, 3)):
            size.append(self.random.choice([d for d in (1, 2, 3, 4, 6) if count % d == 0]))
            count //= size[-1]
        size.insert(self.random.randint(0, len(size)), count)
        self.step(f"reshape {size}", lambda v: v.reshape(size), [x])

    def permute(self):
        x = self.pick(rank=2)
        if x:
            order = self.random.sample(range(len(self.values[x][0])), len(self.values[x][0]))
            self.step(f"permute {order}", lambda v: v.permute(order), [x])

    def cat(self):
        x = self.pick(rank=1)
        dim, (shape, kind) = self.random.randrange(-len(self.values[x][0]), 0), self.values[x]
        same = [n for n, (s, k) in self.values.items() if k == kind and len(s) == len(shape) and
                all(a == b for i, (a, b) in enumerate(zip(s, shape)) if i != dim % len(shape))]
        operands = [self.random.choice(same) for _ in range(self.random.randint(2, 3))]
        self.step(f"cat {dim}", lambda *v: torch.cat(v, dim), operands)

    def slice(self):
        x = self.pick(rank=1)
        dim = self.random.randrange(len(self.values[x][0]))
        size = self.values[x][0][dim]
        start, step = self.random.randrange(size), self.random.choice((1, 1, 2))
        if self.random.random() < 0.3:
            self.step(f"select {dim} {start}", lambda v: v.select(dim, start), [x])
        else:
            index = (slice(None),) * dim + (slice(start, self.random.randint(start + 1, size), step),)
            self.step(f"slice {index}", lambda v: v[index], [x])

    def linear(self):
        if x := self.pick("float", 1):
            out = self.random.choice((2, 3, 4))
            weight, bias = self.parameter(out, self.values[x][0][-1]), self.parameter(out)
            self.step("linear", lambda v: torch.tanh(F.linear(v, weight, bias)), [x])

    def matmul(self):
        x = self.pick("float", 2)
        y = x and self.random.choice([n for n, (s, k) in self.values.items() if k == "float" and s[:-1] == self.values[x][0][:-1]])
        if y and len(self.values[y][0]) >= 2:
            self.step("matmul", lambda a, b: torch.tanh(a.transpose(-1, -2) @ b), [x, y])

    def softmax(self):
        if x := self.pick("float", 1):
            dim = self.random.randrange(-len(self.values[x][0]), 0)
            self.step(f"softmax {dim}", lambda v: F.softmax(v, dim), [x])

    def where(self):
        c, x = self.pick("bool"), self.pick("float")
        if c and x and self.broadcast(c, x):
            self.step("where", lambda m, v: torch.where(m, v, 0.25), [c, x])

    def norm(self):
        if x := self.pick("float", 1):
            size = self.values[x][0][-1]
            weight, bias = self.parameter(size), self.parameter(size)
            if size > 1:
                self.step("layer_norm", lambda v: F.layer_norm(v, (size,), weight, bias, eps=0.1), [x])

    def conv(self):
        fitting = [n for n, (s, k) in self.values.items() if k == "float" and len(s) == 4]
        if fitting:
            x = self.random.choice(fitting)
            channels, depthwise = self.values[x][0][1], self.random.random() < 0.4
            out = channels if depthwise else self.random.choice((1, 2, 4))
            weight = self.parameter(out, 1 if depthwise else channels, 3, 3)
            stride = self.random.choice((1, 1, 2))
            self.step(f"conv2d groups={channels if depthwise else 1} stride={stride}",
                      lambda v: torch.tanh(F.conv2d(v, weight, None, stride, 1, 1, channels if depthwise else 1)), [x])

    def expand(self):
        x = self.pick()
        size = (2, *(-1 if d != 1 else 3 for d in self.values[x][0]))
        self.step(f"expand {size}", lambda v: v.expand(size), [x])

    def inplace(self):
        if x := self.pick("float", 1):
            name = self.random.choice(("add_", "mul_", "clamp_min_"))

            def write(v):
                y = v.clone()
                getattr(y[0:1], name)(0.5)
                return y
            self.step(f"clone and {name}", write, [x])

    def cast(self):
        x = self.pick()
        to = {"float": torch.int64, "int": torch.float32, "bool": torch.float32}[self.values[x][1]]
        # 2.7: a saturated 1.0 must not sit on the edge where float arithmetic decides the integer
        self.step(f"to {to}", lambda v: (v * 2.7 if v.is_floating_point() else v).to(to), [x])

    def split(self):
        x = self.pick(rank=1)
        dim = self.random.randrange(len(self.values[x][0]))
        if self.values[x][0][dim] > 1:
            self.step(f"chunk {dim}", lambda v: torch.chunk(v, 2, dim)[0], [x])



class Generated(nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.draw = Draw(seed)

    def text(self):
        inputs = [f"in{i} : {shape} {kind}" for i, (shape, kind) in enumerate(self.draw.inputs)]
        return "\n".join(inputs + [s[3] for s in self.draw.steps])

    def make_inputs(self, seed):
        generator = torch.Generator().manual_seed(seed)
        return tuple(torch.randn(shape, generator=generator) if kind == "float" else
                     torch.randint(-4, 5, shape, generator=generator) for shape, kind in self.draw.inputs)

    def forward(self, *inputs):
        values = {f"in{i}": x for i, x in enumerate(inputs)}
        used = set()
        for name, function, operands, _ in self.draw.steps:
            values[name] = function(*(values[o] for o in operands))
            used.update(operands)
        return tuple(values[s[0]] for s in self.draw.steps if s[0] not in used)
