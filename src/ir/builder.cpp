#include "ir/builder.h"

#include "ir/constant_pool.h"
#include "ir/element_convert.h"
#include "ir/op_check.h"
#include "support/check.h"

#include <array>

namespace chute::ir {

Op *Builder::place(Op *op) {
  graph_.insert_before(*region_, position_, op);
  return op;
}

Result<Op *> Builder::try_create(OpCode code, std::span<Value *const> operands,
                                 std::span<const NamedAttr> attrs) {
  const OpDef &def = Registry::global().def(code);
  std::array<Attr, kMaxAttrs> full;
  const std::span<Attr> attrs_of_op(full.data(), def.attrs.size());
  if (Status s = complete_attrs(context(), def, attrs, attrs_of_op); !s)
    return tl::unexpected(std::move(s.error()));
  if (Status s = check_operands(def, operands, attrs_of_op); !s)
    return tl::unexpected(std::move(s.error()));
  Result<Op *> op = create_inferred(graph_, code, operands, attrs_of_op, loc_);
  if (op)
    place(*op);
  return op;
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
  const OpDef &def = Registry::global().def(code);
  std::array<Attr, kMaxAttrs> full;
  const std::span<Attr> attrs_of_op(full.data(), def.attrs.size());
  const Status s = complete_attrs(context(), def, attrs, attrs_of_op);
  CHUTE_CHECK(s.has_value(), to_text(s.error()).c_str());
  return place(graph_.create(code, operands, attrs_of_op, result_types, loc_, regions));
}

Value *Builder::constant(const Constant *c, StringId name) {
  const Attr attr = Attr::of_constant(c);
  Op *op = place(graph_.create(core_op::constant, {}, std::span<const Attr>(&attr, 1),
                               std::span<const Type>(&c->type, 1), loc_));
  graph_.set_name(op->result(), name);
  return op->result();
}

Value *Builder::constant(Type type, std::span<const std::byte> bytes) {
  const bool shared = pool_ && bytes.size() <= ConstantPool::kMaxBytes;
  if (shared)
    if (Value *known = pool_->find(*region_, type, bytes))
      return known;
  Value *made = constant(graph_.add_copy(type, bytes));
  if (shared)
    pool_->add(*region_, type, bytes, made);
  return made;
}

Value *Builder::constant_i32(std::span<const i32> values, bool scalar) {
  const SymInt n = static_cast<i64>(values.size());
  const Type type = scalar ? context().tensor_type(ElementType::I32, {})
                           : context().tensor_type(ElementType::I32, {n});
  return constant(type, std::as_bytes(values));
}

Value *Builder::constant_i64(std::span<const i64> values, bool scalar) {
  const SymInt n = static_cast<i64>(values.size());
  const Type type = scalar ? context().tensor_type(ElementType::I64, {})
                           : context().tensor_type(ElementType::I64, {n});
  return constant(type, std::as_bytes(values));
}

Value *Builder::scalar(ElementType element, double value) {
  std::byte bytes[16] = {};
  store_element(element, value, bytes);
  return constant(context().tensor_type(element, {}),
                  {bytes, static_cast<size_t>(element_bytes(element))});
}

Op *Builder::ret(std::span<Value *const> values) {
  return place(graph_.create(core_op::ret, values, {}, {}, loc_));
}

} // namespace chute::ir
