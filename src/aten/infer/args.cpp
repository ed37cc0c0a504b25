#include "aten/infer/args.h"

namespace chute::aten {

using ir::AttrKind;
using ir::SymInt;

InferArgs::InferArgs(const ir::Op &op, ir::Graph &graph, std::vector<ir::Type> &out)
    : op_(op), ctx_(graph.context()), out_(out) {
  for (const ir::Use &use : op.operand_uses())
    if (use.value() && !use.value()->type().is_tensor()) {
      check(false, kOperandError,
            "operand " + std::to_string(use.operand_index()) + " is not a tensor");
      return;
    }
}

InferArgs::TypeList InferArgs::list(u32 spec) const {
  TypeList types;
  const ir::Op::Segment s = op_.segment(spec);
  for (u32 i = 0; i < s.count; ++i) {
    const ir::Value *v = op_.operand(s.first + i);
    types.push_back(v ? v->type() : ir::Type());
  }
  return types;
}

bool InferArgs::flag(std::string_view name) const {
  const ir::Attr a = op_.attr(name);
  return a.kind() == AttrKind::Bool && a.as_bool();
}

SymInt InferArgs::integer(std::string_view name, SymInt absent) const {
  const ir::Attr a = op_.attr(name);
  return a.kind() == AttrKind::Int ? a.as_int() : absent;
}

i64 InferArgs::literal(std::string_view name, i64 absent) {
  // Rules compute with literals in plain integers; the bound keeps sums and squares exact.
  constexpr i64 kLimit = i64{1} << 31;
  const SymInt v = integer(name, absent);
  const bool fits = v.is_static() && v.value() > -kLimit && v.value() < kLimit;
  if (!check(fits, kAttrError,
             [&] { return std::string(name) + " must be a known number of reasonable size"; }))
    return absent;
  return v.value();
}

double InferArgs::real(std::string_view name, double absent) const {
  const ir::Attr a = op_.attr(name);
  if (a.kind() == AttrKind::Int && a.as_int().is_symbolic())
    return absent;
  return a.is_scalar() && a.kind() != AttrKind::Complex ? a.scalar_as_double() : absent;
}

std::string_view InferArgs::text(std::string_view name) const {
  const ir::Attr a = op_.attr(name);
  return a.kind() == AttrKind::String ? a.as_string() : std::string_view();
}

DimSpan InferArgs::ints(std::string_view name) const {
  const ir::Attr a = op_.attr(name);
  return a.kind() == AttrKind::Ints ? a.as_ints() : DimSpan();
}

Dims InferArgs::ints_n(std::string_view name, size_t n, SymInt absent) {
  const DimSpan given = ints(name);
  if (given.empty())
    return Dims(n, absent);
  if (given.size() == 1)
    return Dims(n, given[0]);
  check(given.size() == n, kAttrError, [&] {
    return std::string(name) + " must have " + std::to_string(n) + " numbers, has " +
           std::to_string(given.size());
  });
  Dims out(given.begin(), given.end());
  out.resize(n, absent);
  return out;
}

ir::ElementType InferArgs::dtype(ir::ElementType absent, std::string_view name) const {
  const ir::Attr a = op_.attr(name);
  return a.kind() == AttrKind::Element ? a.as_element() : absent;
}

size_t InferArgs::wrap(SymInt dim, int rank) {
  const auto d = normalize_dim(dim, rank);
  if (!check(d.has_value(), kDimError, [&] {
        return "dimension " + sym().print(dim) + " is outside a tensor of rank " +
               std::to_string(rank);
      }))
    return 0;
  return static_cast<size_t>(*d);
}

size_t InferArgs::dim(std::string_view name, int rank, i64 absent) {
  return wrap(integer(name, absent), rank);
}

InferArgs::DimFlags InferArgs::dim_flags(std::string_view name, int rank, bool empty_is_none) {
  const ir::Attr a = op_.attr(name);
  const bool all =
      a.is_none() || (a.kind() == AttrKind::Ints && a.as_ints().empty() && !empty_is_none);
  DimFlags flags(static_cast<size_t>(rank), all);
  const auto set = [&](SymInt d) {
    const size_t i = wrap(d, rank);
    if (i < flags.size())
      flags[i] = true;
  };
  if (a.kind() == AttrKind::Int)
    set(a.as_int());
  else if (a.kind() == AttrKind::Ints)
    for (SymInt d : a.as_ints())
      set(d);
  return flags;
}

Dims InferArgs::broadcast_all(std::span<const ir::Type> types) {
  Dims shape;
  for (ir::Type t : types)
    if (t)
      broadcast_into(shape, t.shape());
  return shape;
}

void InferArgs::broadcast_into(Dims &into, DimSpan shape) {
  if (auto merged = broadcast(span_of(into), shape))
    into = std::move(*merged);
  else
    check(false, kShapeError,
          "shapes " + print(span_of(into)) + " and " + print(shape) + " do not broadcast");
}

std::string InferArgs::print(DimSpan shape) const {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    s += (i ? ", " : "") + ctx_.sym().print(shape[i]);
  return s + "]";
}

void InferArgs::report(std::string_view code, std::string_view message) {
  if (bad_)
    return;
  bad_ = true;
  code_ = code;
  message_ = message;
}

Status InferArgs::failed() {
  return fail(ErrorKind::Failure, code_, message_, std::string(op_.name()));
}

void InferArgs::check_sizes(DimSpan shape) {
  for (SymInt d : shape)
    if (d.is_static() && d.value() < 0)
      check(false, kShapeError, "a size is negative: " + print(shape));
}

void InferArgs::add(ir::ElementType e, DimSpan shape) {
  check_sizes(shape);
  out_.push_back(ctx_.tensor_type(e, shape));
}

void InferArgs::add_moved(ir::Type from, const Dims &shape) {
  const ir::Quantization *q = from.quant();
  if (q && q->kind != ir::QuantKind::PerTensor)
    q = nullptr; // an axis does not survive a change of shape; the passes that move it know how
  check_sizes(span_of(shape));
  out_.push_back(ctx_.tensor_type(from.element(), span_of(shape), q));
}

Status InferArgs::done(ir::Type t) {
  if (bad_)
    return failed();
  add(t);
  return {};
}

Status InferArgs::done(ir::ElementType e, DimSpan shape) {
  if (!bad_)
    add(e, shape);
  return done();
}

Status InferArgs::done_moved(ir::Type from, const Dims &shape) {
  if (!bad_)
    add_moved(from, shape);
  return done();
}

Status InferArgs::data_dependent(std::string_view what) {
  return fail(ErrorKind::Unsupported, "aten.infer.data_dependent",
              std::string(what) + " is known only when the program runs", std::string(op_.name()),
              "rewrite the model so that the shape does not depend on the values");
}

} // namespace chute::aten
