// simplify-slices: fewer operators that cut tensors apart and join them.
//
//   concatenation(concatenation(a, b), c)            → concatenation(a, b, c), one axis, single use
//   concatenation of one                             → its operand
//   slices that cut x into equal parts               → split(x)
//   slice(slice(x)), nothing else using the inner    → slice(x)
//   split or split_v into one part                   → its operand
//   pad by nothing, tile once, reverse of dimensions of size 1 → the operand
//
// Exact. Slices of x become a SPLIT when they cut one axis into parts of one size, do not overlap,
// start at 0 and take at least a third of it: parts that nothing takes are results without users.
// Parts of different sizes stay slices: onert 0.1.0 computes SPLIT_V wrongly.
#include "circle/passes/rules/slices.h"
#include "circle/passes.h"

#include <algorithm>
#include <limits>

namespace chute::circle {

using ir::Op;
using pass::Rewriter;

namespace {

constexpr i64 kToTheEnd = std::numeric_limits<i32>::max();
constexpr size_t kMostParts = 256;

/// One dimension of a STRIDED_SLICE.
void cut_dimension(Cut &cut, size_t d, SymInt dim, std::optional<i64> b, std::optional<i64> e,
                   i64 step) {
  const bool open_start = !b || *b == 0, open_end = !e || *e >= kToTheEnd;
  cut.step[d] = step;
  if (dim.is_symbolic()) {
    cut.whole[d] = step == 1 && open_start && open_end;
    cut.is_static = false;
    return;
  }
  const i64 n = dim.value();
  const i64 low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto at = [&](std::optional<i64> v, i64 missing) {
    if (!v)
      return missing;
    return std::clamp(*v < 0 ? *v + n : *v, low, high);
  };
  const i64 first = at(b, step > 0 ? 0 : n - 1), last = at(e, step > 0 ? n : -1);
  const i64 span = step > 0 ? last - first : first - last;
  const i64 stride = step > 0 ? step : -step;
  cut.begin[d] = first;
  cut.size[d] = span <= 0 ? 0 : (span + stride - 1) / stride;
  cut.whole[d] = step == 1 && first == 0 && last == n;
}

Cut strided(const Op &op, Cut cut) {
  const std::optional<Dims> begin = small_ints(op.operand(1)), end = small_ints(op.operand(2)),
                            step = small_ints(op.operand(3));
  if (!begin || !end || !step || begin->size() != step->size() || end->size() != step->size() ||
      step->size() > 32 || op.attr("offset").as_bool())
    return {};
  const auto mask = [&](std::string_view name) { return op.attr(name).as_int().value(); };
  const i64 ellipsis = mask("ellipsis_mask"), added = mask("new_axis_mask"),
            shrunk = mask("shrink_axis_mask"), begins = mask("begin_mask"), ends = mask("end_mask");
  const std::span<const SymInt> shape = op.operand(0)->type().shape();
  size_t consumed = 0;
  for (size_t i = 0; i < step->size(); ++i)
    consumed += !(ellipsis >> i & 1) && !(added >> i & 1);
  if (consumed > shape.size())
    return {};
  size_t d = 0;
  for (size_t i = 0; i < step->size(); ++i) {
    if (ellipsis >> i & 1) {
      d += shape.size() - consumed;
      continue;
    }
    if (added >> i & 1) {
      cut.same_rank = false;
      continue;
    }
    if ((*step)[i] == 0)
      return {};
    if (shrunk >> i & 1) {
      // One element at `begin`; the whole dimension only when there is no other.
      cut.same_rank = false;
      cut_dimension(cut, d, shape[d], (*begin)[i], {}, 1);
      cut.whole[d] = shape[d] == SymInt(1) && ((*begin)[i] == 0 || (*begin)[i] == -1);
      cut.size[d] = 1;
    } else {
      cut_dimension(cut, d, shape[d],
                    begins >> i & 1 ? std::nullopt : std::optional<i64>((*begin)[i]),
                    ends >> i & 1 ? std::nullopt : std::optional<i64>((*end)[i]), (*step)[i]);
    }
    ++d;
  }
  return cut;
}

Cut plain(const Op &op, Cut cut) {
  const std::optional<Dims> begin = small_ints(op.operand(1)), size = small_ints(op.operand(2));
  const std::span<const SymInt> shape = op.operand(0)->type().shape();
  if (!begin || !size || begin->size() != shape.size() || size->size() != shape.size())
    return {};
  for (size_t d = 0; d < shape.size(); ++d) {
    const i64 b = (*begin)[d], n = (*size)[d];
    if (b < 0 || n < -1)
      return {};
    cut_dimension(cut, d, shape[d], b, n < 0 ? kToTheEnd : b + n, 1);
    if (cut.is_static && n >= 0 && cut.size[d] != n)
      return {}; // past the end: an invalid file
  }
  return cut;
}

} // namespace

Cut cut_of(const Op &op) {
  Cut cut;
  cut.source = op.operand(0);
  const std::span<const SymInt> shape = cut.source->type().shape();
  cut.begin.assign(shape.size(), 0);
  cut.step.assign(shape.size(), 1);
  cut.whole.assign(shape.size(), true);
  for (SymInt d : shape) {
    cut.size.push_back(d.is_static() ? d.value() : -1);
    cut.is_static = cut.is_static && d.is_static();
  }
  if (op.opcode() == op::STRIDED_SLICE)
    return strided(op, std::move(cut));
  return op.opcode() == op::SLICE ? plain(op, std::move(cut)) : Cut{};
}

namespace {

i64 axis_of(const Op &op) {
  const i64 axis = op.attr("axis").as_int().value();
  return axis < 0 ? axis + op.result()->type().rank() : axis;
}

bool used_only_by(const Value &v, const Op &op) {
  for (const ir::Use *u = v.first_use(); u; u = u->next())
    if (u->owner() != &op)
      return false;
  return true;
}

bool merge_concatenations(Op &op, Rewriter &rw) {
  if (has_activation(op))
    return false;
  if (op.num_operands() == 1 && op.operand(0)->type() == op.result()->type()) {
    rw.replace(op, op.operand(0));
    return true;
  }
  std::vector<Value *> operands;
  bool merged = false;
  for (const ir::Use &u : op.operand_uses()) {
    const Op *inner = made_by(u.value(), op::CONCATENATION);
    if (inner && !used_only_by(*u.value(), op))
      inner = nullptr;
    if (!inner || has_activation(*inner) || axis_of(*inner) != axis_of(op) ||
        !stored_alike(u.value()->type(), op.result()->type()) ||
        operands.size() + inner->num_operands() > kMostParts) {
      operands.push_back(u.value());
      continue;
    }
    for (const ir::Use &v : inner->operand_uses())
      operands.push_back(v.value());
    merged = true;
  }
  if (!merged)
    return false;
  const Type type = op.result()->type();
  rw.replace(op, recreate(rw, op, operands, std::span(&type, 1))->result());
  return true;
}

bool drop_lone_split(Op &op, Rewriter &rw) {
  Value *x = op.operand(op.opcode() == op::SPLIT ? 1 : 0);
  if (op.num_results() != 1 || x->type() != op.result()->type())
    return false;
  rw.replace(op, x);
  return true;
}

bool all_are(const Value *v, i64 number) {
  const std::optional<Dims> ints = small_ints(v);
  return ints && std::ranges::all_of(*ints, [&](i64 n) { return n == number; });
}

bool drop_idle_movement(Op &op, Rewriter &rw) {
  Value *x = op.operand(0);
  if (x->type() != op.result()->type())
    return false;
  const OpCode c = op.opcode();
  bool idle = c == op::SPACE_TO_DEPTH || c == op::DEPTH_TO_SPACE
                  ? op.attr("block_size").as_int() == SymInt(1)
                  : false;
  if (c == op::PAD || c == op::PADV2 || c == op::MIRROR_PAD)
    idle = all_are(op.operand(1), 0);
  if (c == op::TILE)
    idle = all_are(op.operand(1), 1);
  if (c == op::REVERSE_V2) {
    const std::optional<Dims> axes = small_ints(op.operand(1));
    idle = axes && std::ranges::all_of(*axes, [&](i64 a) {
             const i64 at = a < 0 ? a + x->type().rank() : a;
             return at >= 0 && at < x->type().rank() &&
                    x->type().dim(static_cast<int>(at)) == SymInt(1);
           });
  }
  if (!idle)
    return false;
  rw.replace(op, x);
  return true;
}

/// slice(slice(x)), both static and of one rank.
bool merge_slices(Op &op, Rewriter &rw) {
  Op *inner = op.operand(0)->producer();
  if (!inner || (inner->opcode() != op::SLICE && inner->opcode() != op::STRIDED_SLICE))
    return false;
  const Cut outer = cut_of(op), first = cut_of(*inner);
  if (!outer || !first || !outer.is_static || !first.is_static || !outer.same_rank ||
      !first.same_rank)
    return false;
  if (!stored_alike(first.source->type(), op.operand(0)->type()) ||
      !stored_alike(first.source->type(), op.result()->type()))
    return false;
  if (!op.operand(0)->has_one_use()) {
    rw.reject("the slice between has other users");
    return false;
  }
  std::vector<i32> begin, end, step;
  for (size_t d = 0; d < outer.begin.size(); ++d) {
    const i64 s = outer.step[d] * first.step[d];
    const i64 b = first.begin[d] + outer.begin[d] * first.step[d];
    const i64 n = outer.size[d];
    // Backwards past the first element: "-1" would mean the last.
    if (n == 0 || s < 0 || s > kToTheEnd)
      return false;
    begin.push_back(static_cast<i32>(b));
    end.push_back(static_cast<i32>(b + (n - 1) * s + 1));
    step.push_back(static_cast<i32>(s));
  }
  ir::Builder b = rw.before(op);
  Value *operands[] = {first.source, b.constant_i32(begin), b.constant_i32(end),
                       b.constant_i32(step)};
  const Type type = op.result()->type();
  rw.replace(op, b.create_typed(op::STRIDED_SLICE, operands, {}, std::span(&type, 1))->result());
  return true;
}

/// The axis that a slice with step 1 cuts, the others whole; -1 when it is no such slice.
i64 cut_axis(const Cut &cut) {
  if (!cut || !cut.is_static || !cut.same_rank)
    return -1;
  i64 axis = -1;
  for (size_t d = 0; d < cut.whole.size(); ++d) {
    if (cut.whole[d])
      continue;
    if (axis >= 0 || cut.step[d] != 1 || cut.size[d] == 0)
      return -1;
    axis = static_cast<i64>(d);
  }
  return axis;
}

/// Rooted at the slice that starts at 0. Looks at x's users only then, so once per partition.
bool slices_to_split(Op &op, Rewriter &rw) {
  const Cut cut = cut_of(op);
  const i64 axis = cut_axis(cut);
  if (axis < 0 || cut.begin[static_cast<size_t>(axis)] != 0 ||
      !stored_alike(cut.source->type(), op.result()->type()))
    return false;
  struct Part {
    i64 begin, size;
    Op *op;
  };
  std::vector<Part> parts;
  size_t users = 0;
  for (const ir::Use &u : cut.source->uses()) {
    Op *user = u.owner();
    if (++users > kMostParts)
      return false;
    if ((user->opcode() != op::SLICE && user->opcode() != op::STRIDED_SLICE) ||
        u.operand_index() != 0 || user->parent() != op.parent())
      continue;
    const Cut other = cut_of(*user);
    if (cut_axis(other) != axis || !stored_alike(user->result()->type(), op.result()->type()))
      continue;
    parts.push_back(
        {other.begin[static_cast<size_t>(axis)], other.size[static_cast<size_t>(axis)], user});
  }
  std::ranges::sort(parts, [](const Part &a, const Part &b) {
    return std::pair(a.begin, a.op->id()) < std::pair(b.begin, b.op->id());
  });
  const i64 whole = cut.source->type().dim(static_cast<int>(axis)).value(), size = parts[0].size;
  i64 end = 0;
  for (const Part &p : parts) {
    if (p.size != size || p.begin % size || p.begin < end) {
      rw.reject("the slices overlap, or are not of one size");
      return false;
    }
    end = p.begin + size;
  }
  const auto taken = static_cast<i64>(parts.size());
  if (whole % size || taken < 2 || 3 * taken * size < whole) {
    rw.reject("the slices take less than a third of the axis");
    return false;
  }
  // The split stands where x is made known: right after its producer, ahead of every slice.
  Op *producer = cut.source->producer();
  Op *position = producer ? producer->next() : op.parent()->front();
  if (producer && producer->parent() != op.parent())
    return false;
  SymDims shape(cut.source->type().shape().begin(), cut.source->type().shape().end());
  shape[static_cast<size_t>(axis)] = SymInt(size);
  const std::vector<Type> types(static_cast<size_t>(whole / size),
                                rw.context().with_shape(cut.source->type(), shape));
  ir::Builder b(rw.graph(), *op.parent(), position);
  b.set_loc(op.loc());
  // From the end, as legalization counts: onert drops leading dimensions of FULLY_CONNECTED.
  const std::vector<i32> axis_value{static_cast<i32>(axis - cut.source->type().rank())};
  Value *operands[] = {b.constant_i32(axis_value, true), cut.source};
  const NamedAttr num{"num_splits", Attr::of_int(whole / size)};
  Op *split = b.create_typed(op::SPLIT, operands, std::span(&num, 1), types);
  for (const Part &p : parts)
    rw.replace(*p.op, split->result(static_cast<u32>(p.begin / size)));
  return true;
}

} // namespace

void add_slice_rules(pass::PatternSet &set) {
  set.add("merge-concatenations", {op::CONCATENATION}, merge_concatenations);
  set.add("lone-split", {op::SPLIT, op::SPLIT_V}, drop_lone_split);
  set.add("idle-movement",
          {op::PAD, op::PADV2, op::MIRROR_PAD, op::TILE, op::REVERSE_V2, op::SPACE_TO_DEPTH,
           op::DEPTH_TO_SPACE},
          drop_idle_movement);
  set.add("merge-slices", {op::SLICE, op::STRIDED_SLICE}, merge_slices);
  set.add("slices-to-split", {op::SLICE, op::STRIDED_SLICE}, slices_to_split);
}

void simplify_slices(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_slice_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle
