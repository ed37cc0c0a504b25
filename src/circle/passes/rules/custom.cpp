// resolve-custom-ops: custom operators that converters leave for TensorFlow operators become the
// builtin ones that compute the same.
//
//   "AddV2"(x, y)                                    → add
//   "BatchMatMulV2"(x, y) {adj_x, adj_y}             → batch_matmul {adjoint_lhs, adjoint_rhs}
//   "MatMul"(x, y) {transpose_a, transpose_b}        → batch_matmul
//   "SplitV"(x, sizes, axis)                         → split_v
//   "MaxPoolWithArgmax"(x), windows of one element   → x, and their positions as a constant
//   "MaxPoolWithArgmax"(x) without users of the positions → max_pool_2d
//
// The options are FlexBuffers maps; absent ones mean false, and a map that can not be read leaves
// the operator alone. Only results whose declared types are what the builtin operator gives.
// Exact: the same arithmetic. Not part of any level: a runtime may have its own idea of the custom
// operator. (`-p resolve-custom-ops`)
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"

// Strings that hold numbers are not read here: no locale, so that the headers suffice.
#define FLATBUFFERS_LOCALE_INDEPENDENT 0
#include <algorithm>
#include <flatbuffers/flexbuffers.h>
#include <initializer_list>
#include <optional>

namespace chute::circle {

namespace {

using ir::Op;
using pass::Rewriter;

/// The options of a custom operator; invalid when they are damaged, empty when there are none.
class Options {
public:
  explicit Options(const Op &op) {
    const std::string_view bytes = op.attr("custom_options").as_string();
    if (bytes.empty())
      return;
    const auto *data = reinterpret_cast<const u8 *>(bytes.data());
    std::vector<u8> reuse;
    if (bytes.size() < 3 || !flexbuffers::VerifyBuffer(data, bytes.size(), &reuse) ||
        !flexbuffers::GetRoot(data, bytes.size()).IsMap())
      valid_ = false;
    else
      map_ = flexbuffers::GetRoot(data, bytes.size()).AsMap();
  }

  bool valid() const { return valid_; }
  /// A boolean under one of its names; false when it is absent.
  bool flag(std::initializer_list<const char *> names) const {
    for (const char *name : names)
      if (const flexbuffers::Reference value = find(name); !value.IsNull())
        return value.AsBool();
    return false;
  }
  Dims ints(const char *name) const {
    Dims out;
    const auto take = [&](const auto &list) {
      for (size_t i = 0; i < std::min<size_t>(list.size(), 8); ++i)
        out.push_back(list[i].AsInt64());
    };
    const flexbuffers::Reference value = find(name);
    if (value.IsFixedTypedVector())
      take(value.AsFixedTypedVector());
    else if (value.IsTypedVector())
      take(value.AsTypedVector());
    else if (value.IsVector())
      take(value.AsVector());
    return out;
  }
  std::string_view text(const char *name) const {
    const flexbuffers::Reference value = find(name);
    return value.IsString() ? std::string_view(value.AsString().c_str()) : std::string_view();
  }

private:
  flexbuffers::Reference find(const char *name) const {
    return map_ ? (*map_)[name] : flexbuffers::Reference();
  }
  bool valid_ = true;
  std::optional<flexbuffers::Map> map_;
};

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

/// Where every element of an NHWC tensor lies: y, x and channel flattened, the batch too when
/// asked.
Value *positions(Op &op, Rewriter &rw, Type type, bool include_batch) {
  const i64 n = type.num_elements(), line = include_batch ? n : n / type.dim(0).value();
  if (type.element() == ElementType::I32) {
    std::vector<i32> out(static_cast<size_t>(n));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<i32>(static_cast<i64>(i) % line);
    return rw.before(op).constant(rw.graph().add_copy(type, std::as_bytes(std::span(out))));
  }
  std::vector<i64> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<i64>(i) % line;
  return rw.before(op).constant(rw.graph().add_copy(type, std::as_bytes(std::span(out))));
}

bool max_pool(Op &op, Rewriter &rw, const Options &options) {
  constexpr i64 kMostPositions = i64{1} << 22;
  Value *x = op.operand(0);
  const Dims window = options.ints("ksize"), stride = options.ints("strides");
  const std::string_view padding = options.text("padding");
  const Type values = op.result(0)->type(), where = op.result(1)->type();
  if (!is_f32(x) || x->type().rank() != 4 || window.size() != 4 || stride.size() != 4 ||
      window[0] != 1 || window[3] != 1 || stride[0] != 1 || stride[3] != 1 ||
      (padding != "SAME" && padding != "VALID" && !padding.empty()))
    return false;
  if (op.result(1)->has_uses()) {
    const Dims ones(4, 1);
    if (window != ones || stride != ones || values != x->type() || !where.has_static_shape() ||
        !same_shape(where, values) || values.num_elements() < 1 ||
        values.num_elements() > kMostPositions ||
        (where.element() != ElementType::I32 && where.element() != ElementType::I64)) {
      rw.reject("the positions of larger windows have no operator");
      return false;
    }
    Value *results[] = {
        x,
        positions(op, rw, where, options.flag({"include_batch_in_index", "includeBatchInIndex"}))};
    rw.replace(op, results);
    return true;
  }
  const NamedAttr attrs[] = {
      {"padding", rw.context().string_attr(padding.empty() ? "VALID" : padding)},
      {"filter_height", Attr::of_int(window[1])},
      {"filter_width", Attr::of_int(window[2])},
      {"stride_h", Attr::of_int(stride[1])},
      {"stride_w", Attr::of_int(stride[2])}};
  auto made = rw.before(op).try_create(op::MAX_POOL_2D, std::span(&x, 1), attrs);
  if (!made || (*made)->result()->type() != values) {
    if (made)
      rw.erase(**made);
    return false;
  }
  Value *results[] = {(*made)->result(), nullptr};
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
  const Options options(op);
  if (!options.valid()) {
    rw.reject("the options can not be read");
    return false;
  }
  if (code == "MaxPoolWithArgmax" && operands.size() == 1 && op.num_results() == 2)
    return max_pool(op, rw, options);
  if (code == "AddV2" && operands.size() == 2) {
    const NamedAttr pot{"pot_scale_int16", Attr::of_bool(false)};
    return replace_checked(op, rw, op::ADD, operands, std::span(&pot, 1));
  }
  if ((code == "BatchMatMulV2" || code == "MatMul") && operands.size() == 2) {
    const bool lhs = options.flag({"adj_x", "adjoint_a", "transpose_a"}),
               rhs = options.flag({"adj_y", "adjoint_b", "transpose_b"});
    const NamedAttr attrs[] = {{"adjoint_lhs", Attr::of_bool(lhs)},
                               {"adjoint_rhs", Attr::of_bool(rhs)}};
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
