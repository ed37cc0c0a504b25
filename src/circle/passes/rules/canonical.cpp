// canonicalize: one spelling for operators that several others can express.
//
//   expand_dims, squeeze, pack of one, unpack to one → reshape
//   slices that take everything but drop dimensions of size 1 → reshape
//   padv2 with zero (the zero point, when quantized)  → pad
//   split_v into equal parts                          → split
//   minimum/maximum, relu6, …: see fuse-activations
//
// Exact: no element changes. Left alone: per-channel quantization, results that are stored
// differently from their operands, shapes with two dimensions known only at run time.
#include "circle/passes.h"
#include "circle/passes/rules/slices.h"

#include <algorithm>
#include <cmath>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

/// The dimensions other than 1 agree: the elements keep their order.
bool only_ones_differ(Type a, Type b) {
  const auto next = [](std::span<const SymInt> s, size_t i) {
    while (i < s.size() && s[i] == SymInt(1))
      ++i;
    return i;
  };
  size_t i = next(a.shape(), 0), k = next(b.shape(), 0);
  for (; i < a.shape().size() && k < b.shape().size();
       i = next(a.shape(), i + 1), k = next(b.shape(), k + 1))
    if (a.shape()[i] != b.shape()[k])
      return false;
  return i == a.shape().size() && k == b.shape().size();
}

bool to_reshape(Op &op, Rewriter &rw) {
  Value *x = op.operand(0);
  if (op.num_results() != 1 || !x || !only_ones_differ(x->type(), op.result()->type()))
    return false;
  if (!stored_alike(x->type(), op.result()->type())) {
    rw.reject("the result is quantized differently or per channel");
    return false;
  }
  if (x->type() != op.result()->type() && !replace_by_view(op, rw, x)) {
    rw.reject("a scalar, or two dimensions known only at run time");
    return false;
  }
  if (x->type() == op.result()->type())
    rw.replace(op, x);
  return true;
}

bool pack_to_reshape(Op &op, Rewriter &rw) { return op.num_operands() == 1 && to_reshape(op, rw); }

bool slice_to_reshape(Op &op, Rewriter &rw) {
  const Cut cut = cut_of(op);
  if (!cut || !cut.is_whole())
    return false;
  return to_reshape(op, rw);
}

bool zero_pad(Op &op, Rewriter &rw) {
  const Value *x = op.operand(0), *value = op.operand(2);
  const std::optional<double> number = real_splat(value);
  if (!number || value->type().element() != x->type().element() ||
      value->type().quant() != x->type().quant() || !is_movable(x->type()) ||
      !small_ints(op.operand(1)))
    return false;
  if (*number != 0 || std::signbit(*number)) {
    rw.reject("the value is not zero");
    return false;
  }
  rw.replace(op, make(rw, op, op::PAD, {op.operand(0), op.operand(1)}));
  return true;
}

bool equal_split(Op &op, Rewriter &rw) {
  const std::optional<Dims> axis = small_ints(op.operand(2), 1);
  const u32 n = op.num_results();
  if (!axis || axis->size() != 1 || n == 0 || !is_movable(op.operand(0)->type()))
    return false;
  const int rank = op.operand(0)->type().rank();
  const i64 at = (*axis)[0] < 0 ? (*axis)[0] + rank : (*axis)[0];
  if (at < 0 || at >= rank)
    return false;
  std::vector<Type> types;
  for (const Value &v : op.results()) {
    types.push_back(v.type());
    if (v.type() != types[0] || v.type().rank() != rank ||
        v.type().dim(static_cast<int>(at)).is_symbolic()) {
      rw.reject("parts of different sizes");
      return false;
    }
  }
  const SymInt whole = op.operand(0)->type().dim(static_cast<int>(at));
  const SymInt part = types[0].dim(static_cast<int>(at));
  if (whole.is_symbolic() || whole.value() != part.value() * n)
    return false;
  ir::Builder b = rw.before(op);
  // From the end: onert drops leading dimensions of what FULLY_CONNECTED gives.
  const std::vector<i32> dims{static_cast<i32>(at - rank)};
  Value *operands[] = {b.constant_i32(dims, true), op.operand(0)};
  const NamedAttr num{"num_splits", Attr::of_int(n)};
  Op *split = b.create_typed(op::SPLIT, operands, std::span(&num, 1), types);
  std::vector<Value *> results;
  for (Value &v : split->results())
    results.push_back(&v);
  rw.replace(op, results);
  return true;
}

} // namespace

void add_canonical_rules(pass::PatternSet &set) {
  set.add("view-to-reshape", {op::EXPAND_DIMS, op::SQUEEZE, op::UNPACK}, to_reshape);
  set.add("pack-of-one", {op::PACK}, pack_to_reshape);
  set.add("slice-to-reshape", {op::SLICE, op::STRIDED_SLICE}, slice_to_reshape);
  set.add("zero-padv2-to-pad", {op::PADV2}, zero_pad);
  set.add("equal-split-v-to-split", {op::SPLIT_V}, equal_split);
}

void canonicalize(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_canonical_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle
