"""Rules of the optimizer on small graphs: the file before and the file after in tico's interpreter, onert and `chute compare`."""
import numpy as np
import pytest
from conftest import chute
from oracles import apart, circle_inputs, count_operators, difference, run_onert, run_reference

# name: (operators before, after, -p passes, the graph). The text tests beside each rule have the look-alikes.
GRAPHS = {
    "join-parallel": (9, 4, ["join-parallel"], """
graph @m(%x: f32[1,4,8], %w: f32[1,8,3]) -> ("y": f32[1,4,3]) {
  %axis = core.constant dense<1> : i32[]
  %half = core.constant dense<0.5> : f32[]
  %a, %b = circle.split(%axis, %x) {num_splits = 2}
  %p = circle.mul(%a, %half)
  %q = circle.mul(%b, %half)
  %m = circle.batch_matmul(%p, %w)
  %n = circle.batch_matmul(%q, %w)
  %s = circle.softmax(%m) {beta = 1.0}
  %t = circle.softmax(%n) {beta = 1.0}
  %c = circle.concatenation(%s, %t) {axis = 1}
  %y = circle.abs(%c)
  %u = circle.abs(%y)
  return %y
}"""),
    "join-parallel.rotated": (9, 5, ["join-parallel"], """
graph @m(%x: f32[2,4,6], %y: f32[2,4,6]) -> ("z": f32[2,8,6]) {
  %axis = core.constant dense<2> : i32[]
  %a, %b = circle.split(%axis, %x) {num_splits = 2}
  %c, %d = circle.split(%axis, %y) {num_splits = 2}
  %bn = circle.neg(%b)
  %dn = circle.neg(%d)
  %p = circle.concatenation(%bn, %a) {axis = 2}
  %q = circle.concatenation(%dn, %c) {axis = 2}
  %r = circle.tanh(%p)
  %s = circle.tanh(%q)
  %z = circle.concatenation(%r, %s) {axis = 1}
  return %z
}"""),
    "concatenation-of-views": (4, 1, ["simplify-views"], """
graph @m(%x: f32[2,4,4], %y: f32[2,4,4]) -> ("z": f32[2,4,8]) {
  %s = core.constant dense<[2, 4, 1, 4]> : i32[4]
  %t = core.constant dense<[2, 4, 8]> : i32[3]
  %a = circle.reshape(%x, %s) {new_shape = [2, 4, 1, 4]}
  %b = circle.reshape(%y, %s) {new_shape = [2, 4, 1, 4]}
  %c = circle.concatenation(%a, %b) {axis = 2}
  %z = circle.reshape(%c, %t) {new_shape = [2, 4, 8]}
  return %z
}"""),
    "views-of-split": (6, 3, ["simplify-views"], """
graph @m(%x: f32[2,4,8]) -> ("a": f32[2,4,4], "b": f32[2,4,4]) {
  %s = core.constant dense<[2, 4, 2, 4]> : i32[4]
  %t = core.constant dense<[2, 4, 4]> : i32[3]
  %axis = core.constant dense<2> : i32[]
  %v = circle.reshape(%x, %s) {new_shape = [2, 4, 2, 4]}
  %p, %q = circle.split(%axis, %v) {num_splits = 2}
  %c = circle.reshape(%p, %t) {new_shape = [2, 4, 4]}
  %d = circle.reshape(%q, %t) {new_shape = [2, 4, 4]}
  %a = circle.neg(%c)
  %b = circle.abs(%d)
  return %a, %b
}"""),
    "logistic": (8, 3, ["fuse-composites"], """
graph @m(%x: f32[3,4]) -> ("y": f32[3,4], "z": f32[3,4]) {
  %one = core.constant dense<1.0> : f32[]
  %n = circle.neg(%x)
  %e = circle.exp(%n)
  %d = circle.add(%e, %one)
  %y = circle.div(%one, %d)
  %m = circle.neg(%x)
  %f = circle.exp(%m)
  %g = circle.add(%one, %f)
  %z = circle.div(%x, %g)
  return %y, %z
}"""),
    "requantize": (8, 4, ["fuse-requantize"], """
graph @m(%x: u8[2,8] quant(0.5:100), %y: u8[2,8] quant(0.5:128)) -> ("a": u8[2,8] quant(0.75:128),
         "b": u8[2,8] quant(0.5:128), "c": u8[2,8] quant(0.5:128), "d": u8[2,8] quant(2.0:128)) {
  %n = circle.neg(%x) : u8[2,8] quant(0.5:155)
  %a = circle.quantize(%n) : u8[2,8] quant(0.75:128)
  %p = circle.quantize(%y) : u8[2,8] quant(0.5:64)
  %b = circle.quantize(%p) : u8[2,8] quant(0.5:128)
  %q = circle.quantize(%y) : u8[2,8] quant(0.5:192)
  %c = circle.quantize(%q) : u8[2,8] quant(0.5:128)
  %s = circle.add(%y, %y) : u8[2,8] quant(3.0:128)
  %d = circle.quantize(%s) : u8[2,8] quant(2.0:128)
  return %a, %b, %c, %d
}"""),
    "reduce-to-view": (4, 2, ["simplify-reductions"], """
graph @m(%x: f32[2,3,4,5]) -> ("a": f32[2,5], "b": f32[2,1,1,5]) {
  %axes = core.constant dense<[1, -2]> : i32[2]
  %m = circle.mean(%x, %axes) {keep_dims = true}
  %s2 = core.constant dense<[2, 5]> : i32[2]
  %a = circle.reshape(%m, %s2) {new_shape = [2, 5]}
  %s = circle.sum(%x, %axes)
  %s4 = core.constant dense<[2, 1, 1, 5]> : i32[4]
  %b = circle.reshape(%s, %s4) {new_shape = [2, 1, 1, 5]}
  return %a, %b
}"""),
    "transpose-before-view": (3, 2, ["merge-transposes"], """
graph @m(%x: f32[4,6,8]) -> ("a": f32[6,32]) {
  %s = core.constant dense<[1, 4, 6, 8]> : i32[4]
  %v = circle.reshape(%x, %s) {new_shape = [1, 4, 6, 8]}
  %p = core.constant dense<[2, 0, 1, 3]> : i32[4]
  %t = circle.transpose(%v, %p)
  %z = core.constant dense<[6, 32]> : i32[2]
  %a = circle.reshape(%t, %z) {new_shape = [6, 32]}
  return %a
}"""),
    "table-rows": (3, 7, ["table-rows"], """
graph @m(%x: f32[2,2]) -> ("y": f32[2,2]) {
  %i = core.constant dense<[2, 0]> : i32[2]
  %t = core.constant dense<[[1, -2], [3, -4], [5, -128]]> : i8[3,2] quant(axis=0, [0.5:1, 0.25:-3, 2.0:0])
  %d = circle.dequantize(%t) : f32[3,2]
  %g = circle.gather(%d, %i) {axis = 0}
  %y = circle.add(%g, %x)
  return %y
}"""),
    "fold-heavy": (2, 1, ["fold-constants", "--set", "fold_profile=heavy"], """
graph @m(%x: f32[3,2]) -> ("y": f32[3,2]) {
  %s = core.constant dense<[[1, 2], [-2, 3]]> : i8[2,2] quant(axis=0, [0.5:1, 2.0:0])
  %d = circle.dequantize(%s) : f32[2,2]
  %y = circle.fully_connected(%x, %d, none) {keep_num_dims = true}
  return %y
}"""),
    "legacy-gelu": (6, 3, ["optimize-circle"], """
graph @m(%x: f32[3,2]) -> ("y": f32[3,1]) {
  %w = core.constant dense<[[1.0, -2.0], [0.5, 4.0]]> : f32[2,2]
  %b = core.constant dense<[1.0, 2.0]> : f32[2]
  %v = core.constant dense<[[0.70710677, -1.4142135], [0.35355338, 2.828427]]> : f32[2,2]
  %c = core.constant dense<[0.70710677, 1.4142135]> : f32[2]
  %o = core.constant dense<[[3.0, 5.0]]> : f32[1,2]
  %one = core.constant dense<1.0> : f32[]
  %f = circle.fully_connected(%x, %w, %b)
  %s = circle.fully_connected(%x, %v, %c)
  %e = circle.custom(%s) {custom_code = "Erf", custom_options = ""} : f32[3,2]
  %g = circle.add(%e, %one)
  %m = circle.mul(%f, %g)
  %y = circle.fully_connected(%m, %o, none)
  return %y
}"""),
    "layout-region": (8, 4, ["merge-transposes"], """
graph @m(%x: f32[1,3,4,5], %y: f32[1,3,4,5]) -> ("a": f32[1,6,4,5], "b": f32[1,3,4,5]) {
  %in = core.constant dense<[0, 2, 3, 1]> : i32[4]
  %out = core.constant dense<[0, 3, 1, 2]> : i32[4]
  %scale = core.constant dense<[1.0, 2.0, 3.0]> : f32[3]
  %tx = circle.transpose(%x, %in)
  %ty = circle.transpose(%y, %in)
  %m = circle.mul(%tx, %scale)
  %s = circle.add(%m, %ty)
  %c = circle.concatenation(%s, %ty) {axis = 3}
  %a = circle.transpose(%c, %out)
  %n = circle.neg(%s)
  %b = circle.transpose(%n, %out)
  return %a, %b
}"""),
    "dynamic-layer": (1, 5, ["legalize-dynamic-layers"], """
graph @m(%x: f32[2,3,4], %w: f32[5,4], %b: f32[5]) -> ("y": f32[2,3,5]) {
  %y = circle.fully_connected(%x, %w, %b) {keep_num_dims = true, fused_activation_function = "RELU"}
  return %y
}"""),
    "hard-swish": (4, 1, ["fuse-hard-swish"], """
graph @m(%x: f32[3,4]) -> ("y": f32[3,4]) {
  %three = core.constant dense<3.0> : f32[]
  %sixth = core.constant dense<0.16666667> : f32[]
  %a = circle.add(%x, %three)
  %r = circle.relu6(%a)
  %m = circle.mul(%x, %r)
  %y = circle.mul(%m, %sixth)
  return %y
}"""),
}
def run_dequantized(path, values):
    """tico's interpreter on the real numbers that stored ones stand for: it has no integer arithmetic."""
    import torch
    from circle_schema import circle
    from tico.circle.runtime import CircleReferenceRuntime, ExecutionMode
    data = path.read_bytes()
    graph = circle.Model.ModelT.InitFromPackedBuf(data, 0).subgraphs[0]
    reals = []
    for i, v in zip(graph.inputs, values):
        q = graph.tensors[i].quantization
        stored = q is not None and q.scale is not None and len(q.scale)
        reals.append(torch.from_numpy(((v.astype(np.float64) - q.zeroPoint[0]) * q.scale[0]).astype(np.float32) if stored else v))
    return [np.asarray(o) for o in CircleReferenceRuntime(data).run(reals, mode=ExecutionMode.FAKE_QUANTIZE).outputs]


# What no independent runtime has: "Erf" before, HARD_SWISH after.
ALONE = {"legacy-gelu", "hard-swish"}


@pytest.mark.parametrize("name", GRAPHS)
def test_rule_keeps_the_numbers(tmp_path, name):
    count, fewer, passes, text = GRAPHS[name]
    (tmp_path / "m.ir").write_text(text.strip() + "\n")
    before, after = tmp_path / "before.circle", tmp_path / "after.circle"
    chute("optimize", tmp_path / "m.ir", "-o", before, "-p", "dce", "--verify-each")
    chute("optimize", before, "-o", after, "-p", *passes, "--verify-each")
    assert (count_operators(before), count_operators(after)) == (count, fewer)
    step = "2.01" if name == "requantize" else "2e-6"  # its largest step is 2
    chute("compare", before, after, "--random", "3", "--atol", step, "--rtol", "2e-5")
    random = np.random.default_rng(5)
    values = [random.integers(0, 256, shape).astype(np.uint8) if kind == np.uint8 else
              random.uniform(-4, 4, shape).astype(np.float32) for _, kind, shape in circle_inputs(before)]
    ran, truth = 0, None
    for runtime in (run_dequantized if name == "requantize" else run_reference, run_onert):
        want, refused_before = apart(runtime, before, values)
        got, refused_after = apart(runtime, after, values)
        assert refused_before or not refused_after or name in ALONE, (runtime.__name__, refused_after)
        if refused_before or refused_after:
            continue
        ran += 1
        if truth is None:
            truth = want
        elif difference([w.reshape(t.shape) for w, t in zip(want, truth)], truth, 2e-5, float(step))[1]:
            want = truth  # onert 0.1.0 reads one scale where there is one for each channel
        _, wrong = difference([g.reshape(w.shape) for g, w in zip(got, want)], want, 2e-5, float(step))
        assert not wrong, (runtime.__name__, wrong)
    assert ran or name in ALONE
