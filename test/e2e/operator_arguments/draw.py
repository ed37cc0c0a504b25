"""Tensors, shapes and numbers that fit each other, and a value for any argument of an ATen signature."""
import torch

KINDS = {torch.float32: 40, torch.float16: 8, torch.bfloat16: 8, torch.float64: 8, torch.int64: 10, torch.int32: 6,
         torch.int16: 4, torch.int8: 4, torch.uint8: 4, torch.bool: 8}
IGNORED = {"layout", "device", "pin_memory", "memory_format", "generator", "non_blocking", "out"}
MAKERS = {}


def maker(*names):
    """Registers a function of a Draw that makes the arguments of operators whose arguments depend on each other."""
    def register(function):
        for name in names:
            MAKERS[name] = function
        return function
    return register


def resolve(name):
    _, packet, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, packet), overload)


class Draw:
    """One call: tensors from `random`, kind and shape remembered so that arguments fit each other."""

    def __init__(self, random):
        self.random = random
        self.kind = random.choices(list(KINDS), list(KINDS.values()))[0]
        self.empty = random.random() < 0.05  # a shape of this call may hold a zero
        self.shape = self.any_shape()

    def any_shape(self, low=0, high=5):
        rank = self.random.randint(low, high)
        shape = [self.random.choice((1, 2, 3, 4, 5) if rank < 5 else (1, 2, 3)) for _ in range(rank)]
        if self.empty and shape:
            shape[self.random.randrange(rank)] = 0
        return tuple(shape)

    def size(self, low=1, high=5):
        return self.random.randint(low, high)

    def some(self, share):
        return self.random.random() < share

    def pick(self, *choices):
        return self.random.choice(choices)

    def generator(self):
        return torch.Generator().manual_seed(self.random.getrandbits(32))

    def tensor(self, shape=None, kind=None, low=-2.0, high=2.0):
        shape, kind = self.shape if shape is None else tuple(shape), kind or self.kind
        if kind == torch.bool:
            made = torch.rand(shape, generator=self.generator()) > 0.5
        elif kind.is_floating_point:
            made = (torch.rand(shape, generator=self.generator()) * (high - low) + low).to(kind)
        else:
            made = torch.randint(0 if kind == torch.uint8 else -9, 10, shape, generator=self.generator()).to(kind)
        return self.strided(made) if self.some(0.2) else made

    def strided(self, made):
        """The same values in memory of another order."""
        how = self.pick("transposed", "steps", "channels last", "expanded")
        if how == "transposed" and made.dim() > 1:
            return made.mT.contiguous().mT
        if how == "steps" and made.dim():
            return torch.stack((made, made), -1)[..., 0]
        if how == "channels last" and made.dim() == 4:
            return made.contiguous(memory_format=torch.channels_last)
        if how == "expanded" and made.dim() and made.shape[0] > 1:
            return made[:1].expand(made.shape)
        return made

    def related(self):
        """A shape that broadcasts with the first one, mostly."""
        pick = self.random.random()
        if pick < 0.5:
            return self.shape
        if pick < 0.9:
            shape = tuple(d if self.some(0.7) else 1 for d in self.shape)
            return shape[self.random.randint(0, len(shape)):] if self.some(0.3) else shape
        return self.any_shape()

    def index(self, size, shape=None, negative=False):
        shape = self.any_shape(1, 2) if shape is None else shape
        return torch.randint(-size if negative else 0, size, shape, generator=self.generator()) if size else torch.zeros(0, dtype=torch.int64)

    def distinct(self):
        """Values without ties, so that a place in them is one place."""
        count = torch.Size(self.shape).numel()
        return torch.randperm(count, generator=self.generator()).reshape(self.shape).to(self.kind)

    def dim(self, rank=None):
        rank = len(self.shape) if rank is None else rank
        return self.random.randint(-rank, rank - 1) if rank else self.pick(0, -1)

    def dims(self):
        rank = len(self.shape)
        chosen = self.random.sample(range(rank), self.random.randint(0, rank))
        return [d - rank if self.some(0.5) else d for d in chosen]

    def number(self):
        return self.pick(0, 1, 2, 3, -1, -2, 0.5, 1.5, -0.75, 2.0)

    def second_kind(self):
        return self.kind if self.some(0.75) else self.random.choice(list(KINDS))


def argument(d, arg, first):
    """A value for one argument of the signature."""
    kind, name = str(arg.type), arg.name
    if kind.startswith("Optional["):
        if d.some(0.4):
            return None
        kind = kind[9:-1]
    if kind == "Tensor":
        return d.tensor() if first else d.tensor(d.related(), d.second_kind())
    if kind == "List[Tensor]":
        return [d.tensor() for _ in range(d.random.randint(1, 3))]
    if kind == "number":
        return d.number()
    if kind == "bool":
        return d.some(0.5)
    if kind == "float":
        return d.pick(0.1, 0.5, 1.0, 2.0, 1e-5)
    if kind in ("int", "SymInt"):
        if name == "dtype":
            return d.pick(None, torch.float32, torch.int64, torch.int32)
        if "dim" in name or name in ("axis0", "axis1", "source", "destination", "start_dim", "end_dim"):
            return d.dim()
        return d.random.randint(0, 3)
    if kind in ("List[int]", "List[SymInt]"):
        if "dim" in name:
            return d.dims()
        return [d.random.randint(0, 3) for _ in range(d.random.randint(1, 3))]
    if kind == "ScalarType":
        return d.pick(torch.float32, torch.int64, torch.int32)
    raise LookupError(f"no values for {name}: {kind}")


def from_signature(d, schema):
    """Arguments read from the signature alone: each that has a default may be left out."""
    positional, keywords, first = [], {}, True
    open_end = d.some(0.5)
    for arg in schema.arguments:
        if arg.name in IGNORED:
            continue
        if arg.kwarg_only:
            if not arg.has_default_value() or d.some(0.4):
                keywords[arg.name] = argument(d, arg, first)
            continue
        if arg.has_default_value() and open_end and d.some(0.5):
            break
        value = argument(d, arg, first)
        first = first and not isinstance(value, (torch.Tensor, list))
        positional.append(value)
    return tuple(positional), keywords


def another_form(d, schema, positional, keywords):
    """The same call with defaults left out, or with its last arguments by name."""
    positional, keywords = list(positional), dict(keywords)
    named = [a for a in schema.arguments if not a.kwarg_only]
    if d.some(0.5):
        while len(positional) > 1 and len(positional) <= len(named) and named[len(positional) - 1].has_default_value() and \
                not isinstance(positional[-1], torch.Tensor) and positional[-1] == named[len(positional) - 1].default_value:
            positional.pop()
    if d.some(0.3) and 1 < len(positional) <= len(named):
        kept = d.random.randint(1, len(positional))
        keywords.update({named[i].name: positional[i] for i in range(kept, len(positional))})
        positional = positional[:kept]
    return tuple(positional), keywords
