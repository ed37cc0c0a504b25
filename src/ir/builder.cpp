#include "ir/builder.h"

#include "ir/element_convert.h"
#include "support/check.h"

#include <boost/container/small_vector.hpp>

namespace chute::ir {

namespace {

bool accepts(AttrType type, AttrKind kind) {
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

/// Widening that every source relies on: an integer literal where a float is declared, a single
/// integer where a list is declared.
Attr coerce(Context &ctx, AttrType type, Attr value) {
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
  if (type == AttrType::Floats && value.kind() == AttrKind::Float) {
    const double v = value.as_float();
    return ctx.floats_attr(std::span<const double>(&v, 1));
  }
  return value;
}

Status complete_attrs(Context &ctx, const OpDef &def, std::span<const NamedAttr> given,
                      boost::container::small_vector_base<Attr> &out) {
  out.resize(def.attrs.size());
  u64 seen = 0;
  for (const NamedAttr &g : given) {
    const int slot = def.attr_index(g.name);
    if (slot < 0)
      return fail(ErrorKind::Failure, "ir.attr.unknown",
                  "no attribute '" + std::string(g.name) + "'", std::string(def.name));
    const AttrSpec &spec = def.attrs[static_cast<size_t>(slot)];
    const Attr value = coerce(ctx, spec.type, g.value);
    if (!(value.is_none() ? spec.nullable || spec.type == AttrType::Any
                          : accepts(spec.type, value.kind())))
      return fail(ErrorKind::Failure, "ir.attr.type",
                  "attribute '" + std::string(g.name) + "' has the wrong kind",
                  std::string(def.name));
    out[static_cast<size_t>(slot)] = value;
    seen |= u64{1} << slot;
  }
  for (size_t i = 0; i < def.attrs.size(); ++i) {
    if (seen >> i & 1)
      continue;
    const AttrSpec &spec = def.attrs[i];
    if (spec.has_default)
      out[i] = spec.default_value;
    else if (!spec.nullable)
      return fail(ErrorKind::Failure, "ir.attr.missing",
                  "attribute '" + std::string(spec.name) + "' is missing", std::string(def.name));
  }
  return {};
}

Status check_operands(const OpDef &def, std::span<Value *const> operands,
                      std::span<const Attr> attrs) {
  const auto wrong_count = [&] {
    return fail(ErrorKind::Failure, "ir.operand.count",
                "takes " + std::to_string(def.operands.size()) + " operands by its table, given " +
                    std::to_string(operands.size()),
                std::string(def.name));
  };
  const int variadic = def.variadic_operands();
  boost::container::small_vector<size_t, 8> counts;
  if (variadic >= 2) {
    if (attrs.empty() || attrs.back().kind() != AttrKind::Ints ||
        attrs.back().as_ints().size() != def.operands.size())
      return fail(ErrorKind::Failure, "ir.operand.segments", "needs `segments`, one per operand",
                  std::string(def.name));
    for (SymInt n : attrs.back().as_ints()) {
      if (n.is_symbolic() || n.value() < 0 || n.value() > static_cast<i64>(operands.size()))
        return wrong_count();
      counts.push_back(static_cast<size_t>(n.value()));
    }
  } else {
    if (operands.size() + static_cast<size_t>(variadic) < def.operands.size() ||
        (variadic == 0 && operands.size() != def.operands.size()))
      return wrong_count();
    for (const OperandSpec &o : def.operands) {
      const bool many =
          o.arity == OperandArity::Variadic || o.arity == OperandArity::VariadicOptional;
      counts.push_back(many ? operands.size() + 1 - def.operands.size() : 1);
    }
  }
  size_t next = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const OperandArity arity = def.operands[i].arity;
    const bool optional =
        arity == OperandArity::Optional || arity == OperandArity::VariadicOptional;
    if (next + counts[i] > operands.size() ||
        ((arity == OperandArity::One || arity == OperandArity::Optional) && counts[i] != 1))
      return wrong_count();
    for (size_t k = 0; k < counts[i]; ++k, ++next)
      if (!operands[next] && !optional)
        return fail(ErrorKind::Failure, "ir.operand.missing",
                    "operand '" + std::string(def.operands[i].name) + "' is required",
                    std::string(def.name));
  }
  return next == operands.size() ? Status{} : wrong_count();
}

} // namespace

Op *Builder::place(Op *op) {
  graph_.insert_before(*region_, position_, op);
  return op;
}

Result<Op *> Builder::try_create(OpCode code, std::span<Value *const> operands,
                                 std::span<const NamedAttr> attrs) {
  const OpDef &def = Registry::global().def(code);
  boost::container::small_vector<Attr, 12> full;
  if (Status s = complete_attrs(context(), def, attrs, full); !s)
    return tl::unexpected(s.error());
  const std::span<const Attr> full_span(full.data(), full.size());
  if (Status s = check_operands(def, operands, full_span); !s)
    return tl::unexpected(s.error());
  std::vector<Type> types;
  if (def.infer) {
    // Inference reads operands and attributes through an Op, so one without results is made first.
    Op *probe = graph_.create(code, operands, full_span, {}, loc_);
    Status s = def.infer(*probe, graph_, types);
    graph_.erase(probe);
    if (!s)
      return tl::unexpected(s.error());
  } else if (!def.results.empty()) {
    return fail(ErrorKind::Failure, "ir.infer.none", "has no type inference",
                std::string(def.name));
  }
  return place(graph_.create(code, operands, full_span, types, loc_));
}

Op *Builder::create_op(OpCode code, std::span<Value *const> operands,
                       std::span<const NamedAttr> attrs) {
  Result<Op *> op = try_create(code, operands, attrs);
  CHUTE_CHECK(op.has_value(), to_text(op.error()).c_str());
  return *op;
}

Value *Builder::create(OpCode code, std::span<Value *const> operands,
                       std::span<const NamedAttr> attrs) {
  return create_op(code, operands, attrs)->result();
}

Value *Builder::create(OpCode code, std::initializer_list<Value *> operands,
                       std::initializer_list<NamedAttr> attrs) {
  return create_op(code, std::span<Value *const>(operands.begin(), operands.size()),
                   std::span<const NamedAttr>(attrs.begin(), attrs.size()))
      ->result();
}

Op *Builder::create_typed(OpCode code, std::span<Value *const> operands,
                          std::span<const NamedAttr> attrs, std::span<const Type> result_types,
                          std::span<Region *const> regions) {
  boost::container::small_vector<Attr, 12> full;
  const Status s = complete_attrs(context(), Registry::global().def(code), attrs, full);
  CHUTE_CHECK(s.has_value(), to_text(s.error()).c_str());
  return place(graph_.create(code, operands, std::span<const Attr>(full.data(), full.size()),
                             result_types, loc_, regions));
}

Value *Builder::constant(const Constant *c, StringId name) {
  const Attr attr = Attr::of_constant(c);
  Op *op = place(graph_.create(core_op::constant, {}, std::span<const Attr>(&attr, 1),
                               std::span<const Type>(&c->type, 1), loc_));
  graph_.set_name(op->result(), name);
  return op->result();
}

Value *Builder::constant_i32(std::span<const i32> values, bool scalar) {
  const SymInt n = static_cast<i64>(values.size());
  const Type type = scalar ? context().tensor_type(ElementType::I32, {})
                           : context().tensor_type(ElementType::I32, {n});
  return constant(graph_.add_copy(type, std::as_bytes(values)));
}

Value *Builder::constant_i64(std::span<const i64> values, bool scalar) {
  const SymInt n = static_cast<i64>(values.size());
  const Type type = scalar ? context().tensor_type(ElementType::I64, {})
                           : context().tensor_type(ElementType::I64, {n});
  return constant(graph_.add_copy(type, std::as_bytes(values)));
}

Value *Builder::scalar(ElementType element, double value) {
  std::byte bytes[16] = {};
  store_element(element, value, bytes);
  return constant(graph_.add_copy(
      context().tensor_type(element, {}),
      std::span<const std::byte>(bytes, static_cast<size_t>(element_bytes(element)))));
}

Op *Builder::ret(std::span<Value *const> values) {
  return place(graph_.create(core_op::ret, values, {}, {}, loc_));
}

} // namespace chute::ir
