#include "tosa/legalize/emit.h"

#include "ir/element_convert.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace chute::tosa {

namespace {
constexpr size_t kLongestList = 64;  ///< MAX_TENSOR_LIST_SIZE of level 8K
constexpr size_t kMostDims = 6;      ///< MAX_RANK of level 8K
constexpr i64 kMostFolded = 1 << 16; ///< constants up to here are cast at compile time
} // namespace

i64 product(std::span<const i64> dims) {
  return std::accumulate(dims.begin(), dims.end(), i64{1}, std::multiplies());
}

namespace {

bool is_empty(const Value *v) {
  return v && v->type().has_static_shape() && v->type().num_elements() == 0;
}

/// Concatenation leaves empty operands out, so they may be made for it.
bool only_joined(const Value &v) {
  for (const ir::Use *u = v.first_use(); u; u = u->next())
    if (u->owner()->opcode() != aten::op::cat)
      return false;
  return true;
}

} // namespace

bool has_static_types(Emit &e) {
  bool dynamic = false, is_unsigned = false, empty = false;
  const auto look = [&](const Value *v) {
    if (!v || !v->type().is_tensor())
      return;
    const ElementType t = v->type().element();
    dynamic = dynamic || !v->type().has_static_shape();
    // Constants may be other things in bytes: block-scaled weights.
    is_unsigned =
        is_unsigned || (!constant_of(v) && (t == ElementType::U8 || t == ElementType::U16 ||
                                            t == ElementType::U32 || t == ElementType::U64));
  };
  for (const ir::Use &u : e.op.operand_uses()) {
    look(u.value());
    empty = empty || (is_empty(u.value()) && e.op.opcode() != aten::op::cat);
  }
  for (const Value &v : e.op.results()) {
    look(&v);
    empty = empty || (is_empty(&v) && (e.op.num_results() == 1 || !only_joined(v)));
  }
  if (dynamic)
    e.unsupported("over a shape known only at run time",
                  "TOSA 1.0 has static shapes: export without dynamic_shapes");
  else if (is_unsigned)
    e.unsupported("of unsigned integers, which TOSA does not have", "use int8 or int32");
  else if (empty)
    e.unsupported("over nothing: TOSA has no empty tensors");
  return !dynamic && !is_unsigned && !empty;
}

Value *Emit::shape(std::span<const i64> dims) { return b_.constant_i64(dims); }

Value *Emit::number_of(ElementType e, double v, int rank) {
  if (e == ElementType::I32) // the least i64 of a program stands for "less than all others"
    v = std::clamp(v, double(std::numeric_limits<i32>::min()),
                   double(std::numeric_limits<i32>::max()));
  const Dims ones(static_cast<size_t>(rank), 1);
  return constant(e, ones, std::span(&v, 1));
}

Value *Emit::binary(OpCode code, Value *x, Value *y) {
  const int rank = std::max(x->type().rank(), y->type().rank());
  return (*this)(code, {with_rank(x, rank), with_rank(y, rank)});
}

Value *Emit::mul(Value *x, Value *y) {
  const int rank = std::max(x->type().rank(), y->type().rank());
  return (*this)(op::MUL, {with_rank(x, rank), with_rank(y, rank), single(ElementType::I8, 0)});
}

Value *Emit::div(Value *x, Value *y) {
  if (!is_float(x))
    return binary(op::INTDIV, x, y);
  if (const std::optional<double> v = splat_of(y); v && y->type().num_elements() == 1) {
    const int rank = y->type().rank();
    return mul(x, number_of(y->type().element(), 1.0 / *v, rank));
  }
  Value *r = unary(op::RECIPROCAL, y);
  const std::optional<double> one = splat_of(x);
  const bool same = static_dims(r).size() >= static_dims(x).size();
  return one && *one == 1 && same ? r : mul(x, r);
}

Value *Emit::neg(Value *x) {
  const ElementType e = x->type().element();
  return (*this)(op::NEGATE, {x, single(e, 0), single(e, 0)});
}

Value *Emit::clamp(Value *x, double low, double high) {
  if (is_float(x))
    return (*this)(op::CLAMP, {x}, {{"min_val", of(low)}, {"max_val", of(high)}});
  if (std::isfinite(low))
    x = binary(op::MAXIMUM, x, like(x, low));
  return std::isfinite(high) ? binary(op::MINIMUM, x, like(x, high)) : x;
}

Value *Emit::cast(Value *x, ElementType to) {
  const ElementType from = x->type().element();
  if (from == to)
    return x;
  if (const ir::Constant *c = constant_of(x);
      c && c->has_data && c->num_elements() <= kMostFolded && to != ElementType::Bool)
    return converted(*c, to);
  const auto to_type = [&](Value *v, ElementType e) {
    return typed(op::CAST, {v}, {}, context().tensor_type(e, v->type().shape()));
  };
  const bool from_float = ir::is_float(from), to_float = ir::is_float(to);
  // The definition knows bool to and from integers, and floats to and from integers.
  if (to == ElementType::Bool)
    return from_float ? lnot(equal(x, 0.0)) : to_type(x, to);
  if (from == ElementType::Bool && to_float) {
    const int rank = x->type().rank();
    return select(x, number_of(to, 1, rank), number_of(to, 0, rank));
  }
  if (from == ElementType::Bool)
    return to_type(x, to);
  if (from_float && !to_float)
    // torch truncates, CAST rounds.
    x = select(negative(x), unary(op::CEIL, x), unary(op::FLOOR, x));
  return to_type(x, to);
}

Value *Emit::converted(const ir::Constant &c, ElementType to) {
  const ElementType from = c.type.element();
  std::vector<std::byte> bytes(c.dense_bytes());
  c.copy_dense(bytes.data());
  const auto size = static_cast<size_t>(ir::element_bytes(from));
  const auto step = static_cast<size_t>(ir::element_bytes(to));
  std::byte *out = nullptr;
  const ir::Constant *made = graph().add_buffer(context().with_element(c.type, to), &out);
  for (i64 i = 0; i < c.num_elements(); ++i, out += step) {
    const std::byte *at = bytes.data() + static_cast<size_t>(i) * size;
    if (ir::is_float(from) || ir::is_float(to))
      ir::store_element(to, ir::load_element(from, at), out);
    else
      ir::store_element_int(to, ir::load_element_int(from, at), out);
  }
  return constant(made);
}

Value *Emit::shift_right(Value *x, i64 bits) {
  return (*this)(op::ARITHMETIC_RIGHT_SHIFT, {x, like(x, static_cast<double>(bits))},
                 {{"round", of(false)}});
}
Value *Emit::shift_left(Value *x, i64 bits) {
  return (*this)(op::LOGICAL_LEFT_SHIFT, {x, like(x, static_cast<double>(bits))});
}

Value *Emit::sign_bit(Value *x) { return (*this)(op::LOGICAL_RIGHT_SHIFT, {x, like(x, 31)}); }

Value *Emit::as_bool(Value *x) { return cast(x, ElementType::Bool); }

Value *Emit::select(Value *c, Value *x, Value *y) {
  const int rank = std::max({c->type().rank(), x->type().rank(), y->type().rank()});
  return (*this)(op::SELECT, {with_rank(c, rank), with_rank(x, rank), with_rank(y, rank)});
}

Value *Emit::widened(Value *x) {
  const ElementType e = x->type().element();
  return e == ElementType::I8 || e == ElementType::I16 || e == ElementType::Bool
             ? cast(x, ElementType::I32)
             : x;
}

namespace {

/// Dimensions that stay together move as one, those of size 1 not at all: level 8K has no more than
/// six.
Value *transpose_runs(Emit &e, Value *x, std::span<const i64> perm) {
  const Dims in = static_dims(x);
  Dims place(in.size()), out; // of each dimension among those that are not 1
  i64 count = 0;
  for (size_t d = 0; d < in.size(); ++d)
    place[d] = in[d] == 1 ? count : count++;
  struct Run {
    i64 first, size;
  };
  std::vector<Run> runs; // in the order of the result
  i64 next = -1;
  for (const i64 p : perm) {
    const i64 n = in[static_cast<size_t>(p)], at = place[static_cast<size_t>(p)];
    out.push_back(n);
    if (n == 1)
      continue;
    if (at == next)
      runs.back().size *= n;
    else
      runs.push_back({at, n});
    next = at + 1;
  }
  std::vector<Run> before = runs;
  std::ranges::sort(before, {}, &Run::first);
  Dims merged;
  for (const Run &r : before)
    merged.push_back(r.size);
  SymDims order;
  for (const Run &r : runs)
    order.emplace_back(std::ranges::lower_bound(before, r.first, {}, &Run::first) - before.begin());
  Value *y = e.reshape(x, merged);
  if (!std::ranges::is_sorted(runs, {}, &Run::first))
    y = e(op::TRANSPOSE, {y}, {{"perms", e.context().ints_attr(order)}});
  return e.reshape(y, out);
}

} // namespace

Value *Emit::transpose(Value *x, std::span<const i64> perm) {
  if (is_identity(perm))
    return x;
  if (const ir::Constant *c = constant_of(x))
    return constant(permuted(graph(), *c, perm));
  if (perm.size() > kMostDims)
    return transpose_runs(*this, x, perm);
  const SymDims perms(perm.begin(), perm.end());
  return (*this)(op::TRANSPOSE, {x}, {{"perms", context().ints_attr(perms)}});
}

Value *Emit::reshape(Value *x, std::span<const i64> dims) {
  const SymDims target(dims.begin(), dims.end());
  if (std::ranges::equal(x->type().shape(), target))
    return x;
  if (const ir::Constant *c = constant_of(x))
    return constant(reshaped(graph(), *c, target));
  return typed(op::RESHAPE, {x, shape(dims)}, {},
               context().tensor_type(x->type().element(), target));
}

Value *Emit::with_rank(Value *x, int rank) {
  if (x->type().rank() >= rank)
    return x;
  Dims dims = static_dims(x);
  dims.insert(dims.begin(), static_cast<size_t>(rank - x->type().rank()), 1);
  return reshape(x, dims);
}

Value *Emit::slice(Value *x, i64 axis, i64 begin, i64 end, i64 step) {
  Dims dims = static_dims(x);
  const auto a = static_cast<size_t>(axis);
  end = std::max(end, begin);
  const i64 count = (end - begin + step - 1) / step;
  if (begin == 0 && step == 1 && end == dims[a])
    return x;
  if (const ir::Constant *c = constant_of(x))
    return constant(sliced(graph(), *c, axis, begin, end, step));
  if (step == 1 || count <= 1) {
    Dims start(dims.size(), 0);
    start[a] = begin;
    dims[a] = step == 1 ? end - begin : count;
    return (*this)(op::SLICE, {x, shape(start), shape(dims)});
  }
  // As rows of `step` elements, of which the first is taken; padded or cut to whole rows.
  Value *rows = slice(x, axis, begin, std::min(dims[a], begin + count * step));
  dims = static_dims(rows);
  Dims pairs(dims.size() * 2, 0);
  pairs[2 * a + 1] = count * step - dims[a];
  rows = pad(rows, pairs);
  dims[a] = count;
  Dims split = dims;
  split.insert(split.begin() + axis + 1, step);
  rows = slice(reshape(rows, split), axis + 1, 0, 1);
  return reshape(rows, dims);
}

Value *Emit::pad(Value *x, const Dims &pairs, double value) {
  if (std::ranges::all_of(pairs, [](i64 p) { return p == 0; }))
    return x;
  return (*this)(op::PAD, {x, shape(pairs), single(x->type().element(), value)});
}

Value *Emit::concat(std::span<Value *const> parts, i64 axis) {
  const NamedAttr attr{"axis", of(axis)};
  std::vector<Value *> now(parts.begin(), parts.end());
  while (now.size() > 1) {
    // A list of tensors has a limit; more are joined in rounds.
    std::vector<Value *> next;
    for (size_t i = 0; i < now.size(); i += kLongestList) {
      const auto chunk = std::span(now).subspan(i, std::min(kLongestList, now.size() - i));
      next.push_back(chunk.size() == 1 ? chunk[0]
                                       : (*this)(op::CONCAT, std::span<Value *const>(chunk),
                                                 std::span<const NamedAttr>(&attr, 1)));
    }
    now = std::move(next);
  }
  return now[0];
}

Value *Emit::tile(Value *x, const Dims &times) {
  if (std::ranges::all_of(times, [](i64 t) { return t == 1; }))
    return x;
  return (*this)(op::TILE, {x, shape(times)});
}

Value *Emit::broadcast(Value *x, const Dims &target) {
  x = with_rank(x, static_cast<int>(target.size()));
  const Dims from = static_dims(x);
  if (from == target)
    return x;
  if (const ir::Constant *c = constant_of(x)) {
    // A view that repeats: stride 0 where the dimension was 1.
    const Dims dense = strides_of(from);
    Dims strides = c->is_dense() ? dense : Dims(c->strides.begin(), c->strides.end());
    for (size_t i = 0; i < target.size(); ++i)
      if (from[i] != target[i])
        strides[i] = 0;
    const SymDims dims(target.begin(), target.end());
    return constant(graph().add_constant(context().with_shape(c->type, dims), c->data, c->owner,
                                         strides, c->has_data));
  }
  Dims times;
  for (size_t i = 0; i < target.size(); ++i)
    times.push_back(from[i] == target[i] ? 1 : target[i]);
  return tile(x, times);
}

Value *Emit::gather(Value *values, Value *indices) {
  if (is_bool(values))
    return cast((*this)(op::GATHER, {cast(values, ElementType::I8), indices}), ElementType::Bool);
  return (*this)(op::GATHER, {values, indices});
}

Value *Emit::reduce(OpCode code, Value *x, const Dims &axes) {
  for (i64 a : axes)
    if (x->type().dim(static_cast<int>(a)) != SymInt(1))
      x = (*this)(code, {x}, {{"axis", of(a)}});
  return x;
}

Value *Emit::matmul(Value *a, Value *b) {
  const ElementType e = a->type().element();
  Value *zero = single(e, 0);
  Value *y = (*this)(op::MATMUL, {a, b, zero, zero});
  return cast(y, e);
}

} // namespace chute::tosa
