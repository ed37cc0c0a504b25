#include "ir/op_check.h"

#include <boost/container/small_vector.hpp>

namespace chute::ir {

bool attr_accepts(AttrType type, AttrKind kind) {
  switch (type) {
  case AttrType::Int: return kind == AttrKind::Int;
  case AttrType::Float: return kind == AttrKind::Float;
  case AttrType::Bool: return kind == AttrKind::Bool;
  case AttrType::String: return kind == AttrKind::String;
  case AttrType::Element: return kind == AttrKind::Element;
  case AttrType::Scalar:
    return kind == AttrKind::Int || kind == AttrKind::Float || kind == AttrKind::Bool ||
           kind == AttrKind::Complex;
  case AttrType::Ints: return kind == AttrKind::Ints;
  case AttrType::Floats: return kind == AttrKind::Floats;
  case AttrType::Bools: return kind == AttrKind::Bools;
  case AttrType::Strings: return kind == AttrKind::Strings;
  case AttrType::Scalars: return kind == AttrKind::Ints || kind == AttrKind::Floats;
  case AttrType::OptInts: return kind == AttrKind::Ints || kind == AttrKind::List;
  case AttrType::Constant: return kind == AttrKind::Constant;
  case AttrType::Type: return kind == AttrKind::Type;
  case AttrType::Any: return true;
  }
  return false;
}

Attr coerce_attr(Context &ctx, AttrType type, Attr value) {
  if (type == AttrType::Float && value.kind() == AttrKind::Int && value.as_int().is_static())
    return Attr::of_float(static_cast<double>(value.as_int().value()));
  if (type == AttrType::Float && value.kind() == AttrKind::Bool)
    return Attr::of_float(value.as_bool() ? 1.0 : 0.0);
  if (type == AttrType::Int && value.kind() == AttrKind::Bool)
    return Attr::of_int(value.as_bool() ? 1 : 0);
  if (type == AttrType::Bool && value.kind() == AttrKind::Int && value.as_int().is_static())
    return Attr::of_bool(value.as_int().value() != 0);
  if ((type == AttrType::Ints || type == AttrType::Scalars || type == AttrType::OptInts) &&
      value.kind() == AttrKind::Int)
    return ctx.ints_attr({value.as_int()});
  if (type == AttrType::Floats && value.kind() == AttrKind::Ints) {
    boost::container::small_vector<double, 8> out;
    for (SymInt v : value.as_ints()) {
      if (v.is_symbolic())
        return value;
      out.push_back(static_cast<double>(v.value()));
    }
    return ctx.floats_attr(std::span<const double>(out.data(), out.size()));
  }
  if ((type == AttrType::Floats || type == AttrType::Scalars) && value.kind() == AttrKind::Float) {
    const double v = value.as_float();
    return ctx.floats_attr(std::span<const double>(&v, 1));
  }
  return value;
}

Status check_attr(const OpDef &def, size_t slot, Attr value) {
  const AttrSpec &spec = def.attrs[slot];
  if (value.is_none() ? spec.nullable || spec.type == AttrType::Any
                      : attr_accepts(spec.type, value.kind()))
    return {};
  return fail(ErrorKind::Failure, "ir.attr.type",
              "attribute '" + std::string(spec.name) + "' has the wrong kind",
              std::string(def.name));
}

Status complete_attrs(Context &ctx, const OpDef &def, std::span<const NamedAttr> given,
                      std::span<Attr> out) {
  u64 seen = 0;
  for (const NamedAttr &g : given) {
    const int found = def.attr_index(g.name);
    if (found < 0)
      return fail(ErrorKind::Failure, "ir.attr.unknown",
                  "no attribute '" + std::string(g.name) + "'", std::string(def.name));
    const auto slot = static_cast<size_t>(found);
    if (seen >> slot & 1)
      return fail(ErrorKind::Failure, "ir.attr.duplicate",
                  "attribute '" + std::string(g.name) + "' is given twice", std::string(def.name));
    seen |= u64{1} << slot;
    out[slot] = coerce_attr(ctx, def.attrs[slot].type, g.value);
    if (Status s = check_attr(def, slot, out[slot]); !s)
      return s;
  }
  for (size_t i = 0; i < def.attrs.size(); ++i) {
    if (seen >> i & 1)
      continue;
    const AttrSpec &spec = def.attrs[i];
    if (spec.has_default)
      out[i] = spec.default_value;
    else if (spec.nullable)
      out[i] = Attr::none();
    else
      return fail(ErrorKind::Failure, "ir.attr.missing",
                  "attribute '" + std::string(spec.name) + "' is missing", std::string(def.name));
  }
  return {};
}

namespace {

bool is_variadic(OperandArity a) {
  return a == OperandArity::Variadic || a == OperandArity::VariadicOptional;
}

template <class Present>
Status check_operands_of(const OpDef &def, size_t n, std::span<const Attr> attrs,
                         Present &&present) {
  const auto wrong_count = [&] {
    return fail(ErrorKind::Failure, "ir.operand.count",
                "takes " + std::to_string(def.operands.size()) + " operands by its table, given " +
                    std::to_string(n),
                std::string(def.name));
  };
  const size_t declared = def.operands.size();
  const int variadic = Registry::facts(def.opcode).variadic;
  std::span<const SymInt> segments;
  if (variadic >= 2) {
    if (attrs.empty() || attrs.back().kind() != AttrKind::Ints ||
        attrs.back().as_ints().size() != declared)
      return fail(ErrorKind::Failure, "ir.operand.segments", "needs `segments`, one per operand",
                  std::string(def.name));
    segments = attrs.back().as_ints();
  } else if (n + static_cast<size_t>(variadic) < declared || (variadic == 0 && n != declared)) {
    return wrong_count();
  }
  size_t next = 0;
  for (size_t i = 0; i < declared; ++i) {
    const OperandArity arity = def.operands[i].arity;
    size_t count = is_variadic(arity) ? n + 1 - declared : 1;
    if (!segments.empty()) {
      if (segments[i].is_symbolic() || segments[i].value() < 0)
        return wrong_count();
      count = static_cast<size_t>(segments[i].value());
      if (!is_variadic(arity) && count != 1)
        return wrong_count();
    }
    if (count > n - next)
      return wrong_count();
    if (arity == OperandArity::Optional || arity == OperandArity::VariadicOptional) {
      next += count;
      continue;
    }
    for (const size_t end = next + count; next < end; ++next)
      if (!present(next))
        return fail(ErrorKind::Failure, "ir.operand.missing",
                    "operand '" + std::string(def.operands[i].name) + "' is required",
                    std::string(def.name));
  }
  return next == n ? Status{} : wrong_count();
}

} // namespace

Status check_operands(const OpDef &def, std::span<Value *const> operands,
                      std::span<const Attr> attrs) {
  return check_operands_of(def, operands.size(), attrs,
                           [&](size_t i) { return operands[i] != nullptr; });
}

Status check_operands(const Op &op) {
  return check_operands_of(op.def(), op.num_operands(), op.attrs(),
                           [&](size_t i) { return op.operand(static_cast<u32>(i)) != nullptr; });
}

Diagnostic op_diagnostic(const Graph &graph, const Op &op, ErrorKind kind, std::string code,
                         std::string message, std::string hint) {
  const Provenance from = graph.locations().resolve(op.loc());
  Diagnostic d;
  d.kind = kind;
  d.code = std::move(code);
  d.message = std::move(message);
  d.hint = std::move(hint);
  std::string value;
  if (op.num_results() && op.result()->name())
    value = graph.context().string(op.result()->name());
  else if (!from.nodes.empty())
    value = from.nodes.front();
  d.object = (value.empty() ? std::string() : "%" + value + " ") + std::string(op.name());
  if (op.opcode() == core_op::unregistered && op.num_attrs() &&
      op.attr(0).kind() == AttrKind::String)
    d.object += " '" + std::string(op.attr(0).as_string()) + "'";
  d.module_path = from.module_path;
  d.source_line = from.source_line;
  return d;
}

Result<Op *> create_inferred(Graph &graph, OpCode code, std::span<Value *const> operands,
                             std::span<const Attr> attrs, LocId loc,
                             std::span<Region *const> regions) {
  const OpDef &def = Registry::global().def(code);
  // Inference reads operands and attributes through an Op. It is made with as many results as the
  // table names, which is right unless a result is variadic; then a second one takes its place.
  boost::container::small_vector<Type, 4> unset(def.results.size());
  const std::span<const Type> unset_span(unset.data(), unset.size());
  Op *op = graph.create(code, operands, attrs, unset_span, loc, regions);
  if (!def.infer) {
    if (def.results.empty())
      return op;
    graph.discard(op);
    return fail(ErrorKind::Failure, "ir.infer.none", "has no type inference; give result types",
                std::string(def.name));
  }
  // Kept from one operator to the next: most need no memory of their own.
  static thread_local std::vector<Type> kept;
  std::vector<Type> types = std::move(kept);
  types.clear();
  const auto give_back = [&] { kept = std::move(types); };
  Status s = def.infer(*op, graph, types);
  if (!s) {
    graph.discard(op);
    return tl::unexpected(std::move(s.error()));
  }
  for (Type t : types)
    if (t && t.is_tensor())
      for (SymInt d : t.shape())
        if (d.is_static() && d.value() < 0) {
          graph.discard(op);
          return fail(ErrorKind::Failure, "ir.infer.dim",
                      "operands and attributes give a negative dimension", std::string(def.name));
        }
  if (types.size() == op->num_results()) {
    for (u32 i = 0; i < op->num_results(); ++i)
      graph.set_type(op->result(i), types[i]);
  } else {
    graph.discard(op);
    op = graph.create(code, operands, attrs, types, loc, regions);
  }
  give_back();
  return op;
}

} // namespace chute::ir
