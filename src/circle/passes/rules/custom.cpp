// resolve-custom-ops: custom operators that converters leave for TensorFlow operators become the
// builtin ones that compute the same.
//
//   "AddV2"(x, y)                                    → add
//   "BatchMatMulV2"(x, y) {adj_x, adj_y}             → batch_matmul {adjoint_lhs, adjoint_rhs}
//   "MatMul"(x, y) {transpose_a, transpose_b}        → batch_matmul
//   "SplitV"(x, sizes, axis)                         → split_v
//
// The options are FlexBuffers maps; absent ones mean false, and a map that can not be read leaves
// the operator alone. Only results whose declared types are what the builtin operator gives.
// Exact: the same arithmetic. Not part of any level: a runtime may have its own idea of the custom
// operator. (`-p resolve-custom-ops`)
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

// Strings that hold numbers are not read here: no locale, so that the headers suffice.
#define FLATBUFFERS_LOCALE_INDEPENDENT 0
#include <flatbuffers/flexbuffers.h>
#include <initializer_list>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

/// A boolean option under one of its names; nullopt when the options are damaged.
std::optional<bool> option(const Op &op, std::initializer_list<const char *> names) {
  const std::string_view bytes = op.attr("custom_options").as_string();
  if (bytes.empty())
    return false;
  const auto *data = reinterpret_cast<const u8 *>(bytes.data());
  std::vector<u8> reuse;
  if (bytes.size() < 3 || !flexbuffers::VerifyBuffer(data, bytes.size(), &reuse))
    return {};
  const flexbuffers::Reference root = flexbuffers::GetRoot(data, bytes.size());
  if (!root.IsMap())
    return {};
  const flexbuffers::Map map = root.AsMap();
  for (const char *name : names)
    if (const flexbuffers::Reference value = map[name]; !value.IsNull())
      return value.AsBool();
  return false;
}

bool replace_checked(Op &op, Rewriter &rw, OpCode code, std::span<Value *const> operands,
                     std::span<const NamedAttr> attrs) {
  ir::Builder b = rw.before(op);
  auto made = b.try_create(code, operands, attrs);
  if (!made)
    return false;
  Op *builtin = *made;
  bool fits = builtin->num_results() == op.num_results();
  for (u32 i = 0; fits && i < op.num_results(); ++i)
    fits = builtin->result(i)->type() == op.result(i)->type();
  if (!fits) {
    rw.reject("the declared result is not what the builtin operator gives");
    rw.erase(*builtin);
    return false;
  }
  std::vector<Value *> results;
  for (Value &v : builtin->results())
    results.push_back(&v);
  rw.replace(op, results);
  return true;
}

bool resolve(Op &op, Rewriter &rw) {
  const std::string_view code = op.attr("custom_code").as_string();
  for (const ir::Use &u : op.operand_uses())
    if (!u.value() || u.value()->type().quant())
      return false;
  std::vector<Value *> operands;
  for (const ir::Use &u : op.operand_uses())
    operands.push_back(u.value());
  if (code == "AddV2" && operands.size() == 2) {
    const NamedAttr pot{"pot_scale_int16", Attr::of_bool(false)};
    return replace_checked(op, rw, op::ADD, operands, std::span(&pot, 1));
  }
  if ((code == "BatchMatMulV2" || code == "MatMul") && operands.size() == 2) {
    const std::optional<bool> lhs = option(op, {"adj_x", "adjoint_a", "transpose_a"}),
                              rhs = option(op, {"adj_y", "adjoint_b", "transpose_b"});
    if (!lhs || !rhs) {
      rw.reject("the options can not be read");
      return false;
    }
    const NamedAttr attrs[] = {{"adjoint_lhs", Attr::of_bool(*lhs)},
                               {"adjoint_rhs", Attr::of_bool(*rhs)}};
    return replace_checked(op, rw, op::BATCH_MATMUL, operands, attrs);
  }
  if (code == "SplitV" && operands.size() == 3) {
    const std::optional<Dims> sizes = small_ints(operands[1]), axis = small_ints(operands[2], 1);
    if (!sizes || !axis || axis->size() != 1 || sizes->size() != op.num_results())
      return false;
    ir::Builder b = rw.before(op);
    const std::vector<i32> narrow(sizes->begin(), sizes->end());
    const i32 at[] = {static_cast<i32>((*axis)[0])};
    operands[1] = b.constant_i32(narrow);
    operands[2] = b.constant_i32(at, true);
    const NamedAttr num{"num_splits", Attr::of_int(op.num_results())};
    return replace_checked(op, rw, op::SPLIT_V, operands, std::span(&num, 1));
  }
  return false;
}

} // namespace

void add_custom_rules(pass::PatternSet &set) { set.add("resolve-custom", {op::CUSTOM}, resolve); }

void resolve_custom_ops(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_custom_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle
