#include "eval/kernel.h"

#include "aten/ops.h"
#include "circle/ops.h"
#include "eval/kernels/families.h"
#include "support/check.h"
#include "tosa/ops.h"

namespace chute::eval {

const Tensor *KernelContext::maybe(u32 spec) const {
  const ir::Op::Segment s = op_.segment(spec);
  return s.count ? operands_[s.first] : nullptr;
}

const Tensor &KernelContext::in(u32 spec) const {
  const Tensor *t = maybe(spec);
  CHUTE_CHECK(t, "a required operand is absent");
  return *t;
}

std::span<const Tensor *const> KernelContext::list(u32 spec) const {
  const ir::Op::Segment s = op_.segment(spec);
  return operands_.subspan(s.first, s.count);
}

i64 KernelContext::integer(std::string_view name) const {
  const ir::Attr a = op_.attr(name);
  switch (a.kind()) {
  case ir::AttrKind::Int: return resolve_(resolve_state_, a.as_int());
  case ir::AttrKind::Bool: return a.as_bool();
  case ir::AttrKind::Float: return static_cast<i64>(a.as_float());
  default: return 0;
  }
}

double KernelContext::real(std::string_view name) const {
  const ir::Attr a = op_.attr(name);
  return a.kind() == ir::AttrKind::Float ? a.as_float() : static_cast<double>(integer(name));
}

bool KernelContext::boolean(std::string_view name) const { return integer(name) != 0; }

Scalar KernelContext::scalar(std::string_view name) const {
  Scalar s;
  s.is_int = op_.attr(name).kind() != ir::AttrKind::Float;
  s.integer = integer(name);
  s.real = real(name);
  return s;
}

std::string_view KernelContext::text(std::string_view name) const {
  const ir::Attr a = op_.attr(name);
  return a.kind() == ir::AttrKind::String ? a.as_string() : std::string_view();
}

std::vector<i64> KernelContext::integers(std::string_view name) const {
  std::vector<i64> out;
  const ir::Attr a = op_.attr(name);
  if (a.kind() == ir::AttrKind::Ints)
    for (ir::SymInt v : a.as_ints())
      out.push_back(resolve_(resolve_state_, v));
  else if (a.kind() == ir::AttrKind::Int)
    out.push_back(resolve_(resolve_state_, a.as_int()));
  return out;
}

std::vector<double> KernelContext::reals(std::string_view name) const {
  const ir::Attr a = op_.attr(name);
  if (a.kind() == ir::AttrKind::Floats)
    return {a.as_floats().begin(), a.as_floats().end()};
  const std::vector<i64> ints = integers(name);
  return {ints.begin(), ints.end()};
}

Tensor &KernelContext::out(u32 i) {
  if (!types_[i].known())
    throw UnknownShape{};
  if (!results_[i].defined())
    results_[i] = Tensor::allocate(types_[i].element, types_[i].shape);
  return results_[i];
}

tl::unexpected<Diagnostic> KernelContext::fail(std::string message) const {
  return chute::fail(ErrorKind::Failure, "eval.kernel", std::move(message));
}

KernelTable &KernelTable::global() {
  static KernelTable table;
  return table;
}

KernelTable::KernelTable() {
  aten::register_dialect();
  circle::register_dialect();
  tosa::register_dialect();
  for (const std::span<const KernelEntry> family : all_families())
    add(family);
}

std::vector<std::string_view> KernelTable::add(std::span<const KernelEntry> entries) {
  std::vector<std::string_view> unknown;
  for (const KernelEntry &e : entries) {
    if (const ir::OpDef *def = ir::Registry::global().find(e.name))
      kernels_[ir::index(def->opcode)] = e.run;
    else
      unknown.push_back(e.name);
  }
  return unknown;
}

} // namespace chute::eval
