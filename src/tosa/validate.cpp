// The target's side of verification: see verify.h.
#include "ir/context.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "pass/rewriter.h"
#include "tosa/element.h"
#include "tosa/infer.h"
#include "tosa/ops.h"
#include "tosa/verify.h"

#include <algorithm>
#include <map>

namespace chute::tosa {

namespace {

using ir::ElementType;
using ir::Op;

// Level 8K of the specification.
constexpr i64 kMaxRank = 6, kMaxKernel = 8192, kMaxStride = 8192, kMaxScale = 256;
constexpr i64 kMaxListSize = 64, kMaxLog2Size = 31;

/// A row of tosa/table/profiles.inc.
struct TypeRow {
  ElementType in = ElementType::None;
  ElementType weight = ElementType::None; ///< of convolutions
  ElementType out = ElementType::None;
  std::vector<feature::Set> any_of; ///< all members of one of them
};

std::string_view take(std::string_view &text, std::string_view separator) {
  const size_t end = text.find(separator);
  const std::string_view head = text.substr(0, end);
  text = end == text.npos ? std::string_view() : text.substr(end + separator.size());
  return head;
}

feature::Set features_of(std::string_view names) {
  feature::Set set = 0;
  while (!names.empty()) {
    const auto target = parse_target("tosa-1.1+" + std::string(take(names, "&")));
    set |= target ? target->features : 0;
  }
  return set;
}

std::vector<TypeRow> parse_rows(std::string_view text) {
  std::vector<TypeRow> rows;
  while (!text.empty()) {
    std::string_view row = take(text, "; ");
    std::string_view types = take(row, " ");
    std::string_view in = take(types, ">");
    TypeRow r;
    r.in = ir::parse_element_type(take(in, "*")).value_or(ElementType::None);
    if (!in.empty())
      r.weight = ir::parse_element_type(in).value_or(ElementType::None);
    r.out = ir::parse_element_type(types).value_or(ElementType::None);
    while (!row.empty())
      r.any_of.push_back(features_of(take(row, "|")));
    rows.push_back(std::move(r));
  }
  return rows;
}

const std::vector<TypeRow> &rows_of(ir::OpCode code) {
  static const std::vector<std::vector<TypeRow>> *table = [] {
    auto *t = new std::vector<std::vector<TypeRow>>(kNumOps); // lives as long as the program
#define TOSA_TYPES(id, types) (*t)[static_cast<size_t>(OpIndex::id)] = parse_rows(types);
#include "tosa/table/profiles.inc"
    return t;
  }();
  return (*table)[ir::index(code) - ir::kTosaBase];
}

std::string name_of(ElementType e) { return std::string(ir::element_type_name(e)); }

std::optional<Violation> check_types(const Op &op, const Target &target) {
  const std::vector<TypeRow> &rows = rows_of(op.opcode());
  if (rows.empty() || op.num_operands() == 0 || op.num_results() == 0)
    return {};
  const ElementType in = op.operand(op.opcode() == op::SELECT ? 1 : 0)->type().element();
  const ElementType out = op.result()->type().element();
  const bool weighted = rows[0].weight != ElementType::None;
  const ElementType weight = weighted ? op.operand(1)->type().element() : ElementType::None;
  for (const TypeRow &r : rows) {
    if (r.in != in || r.out != out || r.weight != weight)
      continue;
    feature::Set needed = 0;
    for (feature::Set set : r.any_of) {
      if ((set & ~target.features) == 0)
        return {};
      needed |= set;
    }
    const bool all = r.any_of.size() == 1;
    return Violation{"tosa.profile", "on " + name_of(in) + " it needs " + (all ? "" : "one of ") +
                                         feature_names(needed)};
  }
  return Violation{"tosa.types", "no profile or extension has it from " + name_of(in) +
                                     (weighted ? " with weights of " + name_of(weight) : "") +
                                     " to " + name_of(out)};
}

feature::Set extension_of(ir::OpCode code) {
  if (code == op::FFT2D || code == op::RFFT2D)
    return feature::kFft;
  if (code == op::COND_IF || code == op::WHILE_LOOP)
    return feature::kControlFlow;
  if (code == op::CONV2D_BLOCK_SCALED)
    return feature::kMxfpConv;
  if (code == op::MATMUL_T_BLOCK_SCALED || code == op::CAST_FROM_BLOCK_SCALED ||
      code == op::CAST_TO_BLOCK_SCALED)
    return feature::kMxfp;
  return wire(code).shape_result || code == op::ASSERT_EQUAL_SHAPE ? feature::kShape : 0;
}

std::optional<Violation> check_extension(const Op &op, const Target &target) {
  const feature::Set needed = extension_of(op.opcode());
  if (needed & ~target.features)
    return Violation{"tosa.profile", "it needs the extension " + feature_names(needed)};
  if (op.opcode() == op::RESCALE) {
    const std::string_view mode = op.attr("rounding_mode").as_string();
    const feature::Set rounding = mode == "DOUBLE_ROUND"    ? feature::kDoubleRound
                                  : mode == "INEXACT_ROUND" ? feature::kInexactRound
                                                            : 0;
    if (rounding & ~target.features)
      return Violation{"tosa.profile",
                       "its rounding needs the extension " + feature_names(rounding)};
  }
  return {};
}

/// "MAX_X: what value is above limit".
std::optional<Violation> above(std::string_view limit_name, std::string_view what, i64 value,
                               i64 limit) {
  if (value <= limit)
    return {};
  return Violation{"tosa.level", std::string(limit_name) + ": " + std::string(what) + " " +
                                     std::to_string(value) + " is above " + std::to_string(limit)};
}

std::optional<Violation> check_list(const Op &op, std::string_view attr, std::string_view name,
                                    i64 limit) {
  if (op.def().attr_index(attr) < 0 || op.attr(attr).kind() != ir::AttrKind::Ints)
    return {};
  for (ir::SymInt v : op.attr(attr).as_ints())
    if (auto bad = above(name, attr, v.value(), limit))
      return bad;
  return {};
}

std::optional<Violation> check_kernel(const Op &op) {
  const ir::OpCode c = op.opcode();
  const bool depthwise = c == op::DEPTHWISE_CONV2D;
  if (c != op::CONV2D && c != op::CONV3D && c != op::TRANSPOSE_CONV2D && !depthwise)
    return {};
  const ir::Type w = op.operand(1)->type();
  const auto dilation = op.def().attr_index("dilation") >= 0 ? op.attr("dilation").as_ints()
                                                             : std::span<const ir::SymInt>();
  for (int i = 0; i < w.rank() - 2; ++i) {
    const ir::SymInt k = w.dim(depthwise ? i : i + 1);
    const i64 step =
        static_cast<size_t>(i) < dilation.size() ? dilation[static_cast<size_t>(i)].value() : 1;
    if (k.is_static())
      if (auto bad = above("MAX_KERNEL", "dilation times kernel", step * k.value(), kMaxKernel))
        return bad;
  }
  return {};
}

std::optional<Violation> check_resize(const Op &op) {
  if (op.opcode() != op::RESIZE)
    return {};
  const auto scale = constant_ints(op.operand(1));
  if (!scale || scale->size() != 4)
    return {};
  for (size_t i = 0; i < 4; i += 2)
    if ((*scale)[i + 1] > 0)
      if (auto bad = above("MAX_SCALE", "scale", (*scale)[i] / (*scale)[i + 1], kMaxScale))
        return bad;
  return {};
}

std::optional<Violation> check_level(const Op &op) {
  const auto check_value = [](const ir::Value &v) -> std::optional<Violation> {
    if (!v.type().is_tensor())
      return {};
    if (auto bad = above("MAX_RANK", "rank", v.type().rank(), kMaxRank))
      return bad;
    for (ir::SymInt d : v.type().shape())
      if (d.is_static())
        if (auto bad = above("MAX_LOG2_SIZE", "size", d.value(), (i64{1} << kMaxLog2Size) - 1))
          return bad;
    return {};
  };
  for (const ir::Use &u : op.operand_uses())
    if (u.value())
      if (auto bad = check_value(*u.value()))
        return bad;
  for (const ir::Value &v : op.results())
    if (auto bad = check_value(v))
      return bad;
  if (op.opcode() == op::CONCAT || op.opcode() == op::CUSTOM || op.num_regions())
    if (auto bad =
            above("MAX_TENSOR_LIST_SIZE", "number of tensors", op.num_operands(), kMaxListSize))
      return bad;
  if (auto bad = check_list(op, "kernel", "MAX_KERNEL", kMaxKernel))
    return bad;
  for (const std::string_view pad : {"pad", "out_pad"})
    if (auto bad = check_list(op, pad, "MAX_KERNEL", kMaxKernel))
      return bad;
  if (auto bad = check_list(op, "stride", "MAX_STRIDE", kMaxStride))
    return bad;
  if (auto bad = check_kernel(op))
    return bad;
  return check_resize(op);
}

} // namespace

std::optional<Violation> check_operator(const Op &op, const Target &target) {
  if (!is_tosa(op.opcode()))
    return {};
  if (wire(op.opcode()).minor > target.minor)
    return Violation{"tosa.version",
                     "it came with TOSA 1." + std::to_string(wire(op.opcode()).minor)};
  if (auto bad = check_extension(op, target))
    return bad;
  if (auto bad = check_types(op, target))
    return bad;
  return target.level_8k ? check_level(op) : std::nullopt;
}

void validate(const ir::Graph &graph, const Target &target, Diagnostics &diagnostics,
              ErrorKind kind, std::string_view hint) {
  struct Finding {
    const Op *first;
    Violation why;
    u64 count;
  };
  std::vector<Finding> findings;
  std::map<std::string, size_t> index;
  ir::walk(graph, [&](const Op &op) {
    auto bad = check_operator(op, target);
    if (!bad)
      return;
    const std::string key = std::string(op.name()) + '\n' + bad->clause;
    const auto [at, fresh] = index.emplace(key, findings.size());
    if (fresh)
      findings.push_back({&op, std::move(*bad), 0});
    ++findings[at->second].count;
  });
  for (const Finding &f : findings) {
    std::string text = f.why.clause;
    if (f.count > 1)
      text += " (" + std::to_string(f.count) + " places; the first is named)";
    const bool profile = f.why.code == "tosa.profile";
    diagnostics.add(pass::at_op(graph, *f.first, kind, f.why.code, std::move(text),
                                profile ? std::string(hint) : std::string()));
  }
}

} // namespace chute::tosa
