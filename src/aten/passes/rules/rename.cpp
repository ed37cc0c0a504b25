#include "aten/ops.h"
#include "aten/passes/emit.h"
#include "aten/passes/rules.h"

#include <boost/unordered/unordered_flat_map.hpp>

// Spellings of one operator become one: aliases (multiply, arccos, concat), copies (permute_copy: a
// value has no aliases any more) and checks, which vanish.
namespace chute::aten {

namespace {

struct Rename {
  ir::OpCode from;
  ir::OpCode to;
};
constexpr Rename kRenames[] = {
#define RENAME(from, to) {op::from, op::to},
#include "aten/passes/renames.def"
#undef RENAME
};

bool rename(ir::Op &op, pass::Rewriter &rw) {
  static const auto *targets = [] {
    auto *map = new boost::unordered_flat_map<u16, ir::OpCode>;
    for (const Rename &r : kRenames)
      map->emplace(ir::index(r.from), r.to);
    return map;
  }();
  const ir::OpDef &to = ir::Registry::global().def(targets->at(ir::index(op.opcode())));
  std::vector<ir::NamedAttr> attrs;
  for (size_t i = 0; i < op.num_attrs(); ++i) {
    const std::string_view name = op.def().attrs[i].name;
    // `split_size` against `split_sizes`: where the names differ, the positions agree.
    if (to.attr_index(name) >= 0)
      attrs.push_back({name, op.attr(static_cast<u32>(i))});
    else if (to.attrs.size() == op.num_attrs())
      attrs.push_back({to.attrs[i].name, op.attr(static_cast<u32>(i))});
  }
  std::vector<V> operands;
  for (const ir::Use &use : op.operand_uses())
    operands.push_back(use.value());
  std::vector<ir::Type> types;
  for (const ir::Value &r : op.results())
    types.push_back(r.type());
  ir::Op *made = rw.before(op).create_typed(to.opcode, operands, attrs, types);
  std::vector<V> results;
  for (ir::Value &r : made->results())
    results.push_back(&r);
  rw.replace(op, results);
  return true;
}

bool drop_check(ir::Op &op, pass::Rewriter &rw) {
  // Functional assertions return their token operand, the last one.
  std::vector<V> values(op.num_results(), nullptr);
  for (size_t i = 0; i < values.size(); ++i)
    if (op.result(static_cast<u32>(i))->has_uses()) {
      if (!op.num_operands())
        return false;
      values[i] = op.operand(op.num_operands() - 1);
    }
  rw.replace(op, values);
  return true;
}

} // namespace

void add_rename_rules(pass::PatternSet &set) {
  pass::Pattern p{"rename", {}, rename};
  for (const Rename &r : kRenames)
    p.roots.push_back(r.from);
  set.add(std::move(p));
  set.add_for_trait("drop-check", ir::trait::kCheck, drop_check);
}

void add_no_op_rules(pass::PatternSet &set) {
  set.add_for_trait("drop-no-op", ir::trait::kNoOp | ir::trait::kPure,
                    rule<[](Emit &e) { return e.in(); }>);
  // Conversions: the recorded type says what they do.
  set.add("to",
          {op::to_device, op::to_dtype, op::to_dtype_layout, op::to_other, op::to_prim_dtype,
           op::type_as},
          rule<[](Emit &e) { return e.cast(e.in(), e.type().element()); }>);
  set.add("same-type-copy", {op::u_to_copy},
          rule<[](Emit &e) -> V { return e.in()->type() == e.type() ? e.in() : nullptr; }>);
  set.add("dropout",
          {op::dropout, op::alpha_dropout, op::feature_dropout, op::feature_alpha_dropout},
          rule<[](Emit &e) -> V {
            if (e.flag("train") && e.number("p") != 0)
              return e.reject("dropout of a model in training mode");
            return e.in();
          }>);
  set.add("native-dropout", {op::native_dropout}, rule<[](Emit &e) -> Values {
            if (e.flag("train") && e.number("p") != 0)
              return e.reject("dropout of a model in training mode"), Values{};
            return {e.in(), e.used(1) ? e.full(e.shape(1), 1, ElementType::Bool) : nullptr};
          }>);
  set.add("real", {op::real, op::conj, op::u_conj, op::u_conj_physical}, rule<[](Emit &e) -> V {
            return ir::is_complex(e.in()->type().element()) ? nullptr : e.in();
          }>);
}

} // namespace chute::aten
