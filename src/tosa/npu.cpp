// Limits of the Ethos-U family, operator by operator. U55 and U65 share one set.
#include "tosa/npu.h"

#include "ir/text.h"
#include "tosa/infer.h"
#include "tosa/ops.h"

#include <algorithm>

namespace chute::tosa {

namespace {

using ir::ElementType;
using ir::Op;

// Of U55 and U65.
constexpr i64 kMostElements = 65536; ///< of one dimension, or of dimensions that are walked as one
constexpr i64 kMostKernelHeight = 64, kMostKernel = 64 * 64;
constexpr i64 kMostStride = 3;
constexpr i64 kMostPoolWidth = 256, kMostPool = 256 * 256, kMostPaddedPool = 8;
// Of every family.
constexpr i64 kMostFactor = 2048, kLeastFactor = 16, kMostResized = 16384;

std::optional<Violation> no(std::string clause) {
  return Violation{"tosa.ethosu", std::move(clause)};
}
std::string text(i64 v) { return std::to_string(v); }
std::string name_of(ElementType e) { return std::string(ir::element_type_name(e)); }

/// "what VALUE is above LIMIT".
std::optional<Violation> above(std::string_view what, i64 value, i64 limit) {
  if (value <= limit)
    return {};
  return no(std::string(what) + " " + text(value) + " is above " + text(limit));
}

ElementType element(const Op &op, u32 operand) { return op.operand(operand)->type().element(); }
i64 dim(const ir::Value *v, int i) {
  const ir::SymInt d = v->type().dim(i);
  return d.is_static() ? d.value() : 1;
}
std::vector<i64> list(const Op &op, std::string_view attr) {
  std::vector<i64> out;
  for (ir::SymInt v : op.attr(attr).as_ints())
    out.push_back(v.value());
  return out;
}

bool one_of(ElementType e, std::initializer_list<ElementType> known) {
  return std::ranges::find(known, e) != known.end();
}
bool one_of(ir::OpCode c, std::initializer_list<ir::OpCode> known) {
  return std::ranges::find(known, c) != known.end();
}

std::optional<Violation> check_elements(const Op &op, u32 operand,
                                        std::initializer_list<ElementType> known) {
  const ElementType e = element(op, operand);
  if (one_of(e, known))
    return {};
  std::string names;
  for (const ElementType k : known)
    names += (names.empty() ? "" : ", ") + name_of(k);
  return no("element type " + name_of(e) + " is none of " + names);
}

/// Channels, height and width of a feature map in NHWC.
std::optional<Violation> check_sizes(const ir::Value *v) {
  for (int i = 1; i < v->type().rank(); ++i)
    if (auto bad = above("size", dim(v, i), kMostElements))
      return bad;
  return {};
}

bool all_are(const std::vector<i64> &v, i64 want) {
  return std::ranges::all_of(v, [want](i64 x) { return x == want; });
}

std::optional<Violation> check_stride(const Op &op, bool free_without_padding) {
  const std::vector<i64> stride = list(op, "stride");
  const bool plain = free_without_padding && all_are(list(op, "pad"), 0) &&
                     (op.def().attr_index("dilation") < 0 || all_are(list(op, "dilation"), 1));
  for (const i64 s : stride)
    if (s > kMostStride && !plain)
      return no("stride " + text(s) + " is above " + text(kMostStride) +
                (free_without_padding ? " where there is padding or dilation" : ""));
  return {};
}

std::optional<Violation> check_convolution(const Op &op) {
  if (auto bad = check_elements(op, 0, {ElementType::I8, ElementType::I16}))
    return bad;
  if (auto bad = check_elements(op, 1, {ElementType::I8, ElementType::I4}))
    return bad;
  if (auto bad = check_sizes(op.operand(0)))
    return bad;
  const bool depthwise = op.opcode() == op::DEPTHWISE_CONV2D;
  const i64 height = dim(op.operand(1), depthwise ? 0 : 1),
            width = dim(op.operand(1), depthwise ? 1 : 2);
  if (auto bad = above("kernel height", height, kMostKernelHeight))
    return bad;
  if (auto bad = above("kernel height times width", height * width, kMostKernel))
    return bad;
  if (op.opcode() != op::TRANSPOSE_CONV2D)
    return check_stride(op, true);
  const std::vector<i64> stride = list(op, "stride");
  const i64 rows = dim(op.operand(0), 1);
  const bool row = rows == 1 && height == 1 && stride[1] <= 2; // one row, strides of its own
  if (stride[0] == stride[1] && stride[0] <= 2)
    return {};
  return row ? std::nullopt
             : no("transposed with stride " + text(stride[0]) + "x" + text(stride[1]) +
                  ", which is neither 1x1 nor 2x2");
}

std::optional<Violation> check_pool(const Op &op) {
  if (auto bad = check_elements(op, 0, {ElementType::I8, ElementType::I16}))
    return bad;
  if (auto bad = above("batch", dim(op.operand(0), 0), 1))
    return bad;
  const std::vector<i64> kernel = list(op, "kernel");
  if (auto bad = above("kernel width", kernel[1], kMostPoolWidth))
    return bad;
  if (auto bad = above("kernel height times width", kernel[0] * kernel[1], kMostPool))
    return bad;
  if (op.opcode() == op::AVG_POOL2D && !all_are(list(op, "pad"), 0))
    for (const i64 k : kernel)
      if (auto bad = above("kernel of a padded average", k, kMostPaddedPool))
        return bad;
  // A window as large as its input moves nowhere.
  const bool once = dim(op.result(), 1) == 1 && dim(op.result(), 2) == 1;
  return once ? std::nullopt : check_stride(op, false);
}

std::optional<Violation> check_sum(const Op &op) {
  const ir::Value *x = op.operand(0);
  i64 before = 1, after = 1;
  const auto axis = static_cast<int>(op.attr("axis").as_int().value());
  for (int i = 0; i < x->type().rank(); ++i) {
    if (auto bad = above("size", dim(x, i), kMostElements))
      return bad;
    (i < axis ? before : after) *= i == axis ? 1 : dim(x, i);
  }
  if (auto bad = above("product of the sizes before the axis", before, kMostElements))
    return bad;
  return above("product of the sizes behind the axis", after, kMostElements);
}

/// Ratio, size and offsets, which every family limits.
std::optional<Violation> check_factors(const Op &op) {
  const auto scale = constant_ints(op.operand(1));
  if (!scale || scale->size() != 4)
    return no("a scale that is computed at run time");
  for (int i = 0; i < 2; ++i) {
    const i64 n = (*scale)[static_cast<size_t>(2 * i)],
              d = (*scale)[static_cast<size_t>(2 * i) + 1];
    if (auto bad = above("numerator of the scale", n, kMostFactor))
      return bad;
    if (d >= kLeastFactor * n)
      return no("scale " + text(n) + "/" + text(d) + " is not above 1/" + text(kLeastFactor));
    for (const ir::Value *v : {op.operand(0), op.result()})
      if (auto bad = above("size", dim(v, i + 1), kMostResized - 1))
        return bad;
  }
  return {};
}

std::optional<Violation> check_resize(const Op &op) {
  if (op.attr("mode").as_string() != "NEAREST")
    return no("bilinear resizing");
  if (auto bad = above("batch", dim(op.operand(0), 0), 1))
    return bad;
  for (int i = 1; i <= 2; ++i) {
    const i64 in = dim(op.operand(0), i), out = dim(op.result(), i);
    const i64 factor = in > 0 && out % in == 0 ? out / in : 0;
    if (in != out && factor != 2 && factor != 4 && factor != 8)
      return no("resizing from " + text(in) + " to " + text(out) + ", which is not by 2, 4 or 8");
  }
  return {};
}

std::optional<Violation> check_transpose(const Op &op) {
  const ir::Value *x = op.operand(0);
  const int rank = x->type().rank();
  if (rank < 3)
    return {};
  // All but two dimensions are walked as one: the largest ones at worst.
  std::vector<i64> sizes;
  for (int i = 0; i < rank; ++i)
    sizes.push_back(dim(x, i));
  std::ranges::sort(sizes, std::greater());
  i64 product = 1;
  for (int i = 0; i < rank - 2; ++i)
    product *= sizes[static_cast<size_t>(i)];
  return above("product of all but two sizes", product, kMostElements);
}

std::optional<Violation> check_cast(const Op &op) {
  const ElementType from = element(op, 0), to = op.result()->type().element();
  if (one_of(from, {ElementType::Bool, ElementType::I32}) || to == ElementType::Bool)
    return no("a cast from " + name_of(from) + " to " + name_of(to));
  return {};
}

/// One operand may be spread over the other, not both.
std::optional<Violation> check_broadcast(const Op &op) {
  if (op.num_operands() < 2)
    return {};
  bool spread[2] = {false, false};
  const ir::Type out = op.result()->type();
  for (u32 k = 0; k < 2; ++k)
    for (int i = 0; i < op.operand(k)->type().rank() && i < out.rank(); ++i)
      spread[k] = spread[k] || op.operand(k)->type().dim(i) != out.dim(i);
  return spread[0] && spread[1] ? no("broadcasting of both operands") : std::nullopt;
}

std::optional<Violation> check_small(const Op &op) {
  const ir::OpCode c = op.opcode();
  if (one_of(c, {op::REDUCE_ANY, op::REDUCE_ALL,    op::REDUCE_PRODUCT, op::BITWISE_AND,
                 op::BITWISE_OR, op::BITWISE_XOR,   op::BITWISE_NOT,    op::LOGICAL_AND,
                 op::LOGICAL_OR, op::LOGICAL_XOR,   op::LOGICAL_NOT,    op::EQUAL,
                 op::GREATER,    op::GREATER_EQUAL, op::GATHER,         op::SCATTER,
                 op::SELECT,     op::CONV3D,        op::INTDIV,         op::COND_IF,
                 op::WHILE_LOOP}))
    return no("the processor has no such operator");
  for (const ir::Value &v : op.results())
    if (v.type().is_tensor() && v.type().element() == ElementType::Bool)
      return no("element type bool");
  if (one_of(c, {op::CONV2D, op::DEPTHWISE_CONV2D, op::TRANSPOSE_CONV2D}))
    return check_convolution(op);
  if (one_of(c, {op::AVG_POOL2D, op::MAX_POOL2D}))
    return check_pool(op);
  if (c == op::MATMUL)
    return check_elements(op, 0, {ElementType::I8});
  if (one_of(c, {op::TABLE, op::REDUCE_MAX, op::REDUCE_MIN, op::ARGMAX, op::CLAMP}))
    return check_elements(op, 0, {ElementType::I8, ElementType::I16});
  if (one_of(c, {op::RESHAPE, op::SLICE, op::CONCAT, op::PAD, op::TILE, op::IDENTITY}))
    return check_elements(op, 0, {ElementType::I8, ElementType::I16, ElementType::I32});
  if (c == op::REVERSE) {
    const i64 axis = op.attr("axis").as_int().value();
    return op.operand(0)->type().rank() == 4 && (axis == 1 || axis == 2)
               ? std::nullopt
               : no("reversing other than dimension 1 or 2 of 4");
  }
  if (c == op::TRANSPOSE)
    return check_transpose(op);
  if (c == op::REDUCE_SUM)
    return check_sum(op);
  if (c == op::RESIZE)
    return check_resize(op);
  if (c == op::CAST)
    return check_cast(op);
  if (one_of(c, {op::LOGICAL_LEFT_SHIFT, op::LOGICAL_RIGHT_SHIFT, op::ARITHMETIC_RIGHT_SHIFT}))
    if (auto bad = check_elements(op, 0, {ElementType::I32}))
      return bad;
  if (one_of(c, {op::ADD, op::SUB, op::MUL, op::MAXIMUM, op::MINIMUM, op::LOGICAL_LEFT_SHIFT,
                 op::LOGICAL_RIGHT_SHIFT, op::ARITHMETIC_RIGHT_SHIFT}))
    return check_broadcast(op);
  return {};
}

} // namespace

std::optional<Npu> npu_of(std::string_view accelerator) {
  if (accelerator.starts_with("ethos-u55"))
    return Npu::EthosU55;
  if (accelerator.starts_with("ethos-u65"))
    return Npu::EthosU65;
  if (accelerator.starts_with("ethos-u85"))
    return Npu::EthosU85;
  return std::nullopt;
}

Target npu_target(Npu npu) {
  Target t;
  t.features = feature::kInt | feature::kInt16 | feature::kInt4;
  if (npu == Npu::EthosU85)
    t.features |= feature::kControlFlow;
  return t;
}

std::optional<Violation> check_npu(const Op &op, Npu npu) {
  if (!is_tosa(op.opcode()))
    return {};
  for (const ir::Value &v : op.results())
    if (v.type().is_tensor() && !v.type().has_static_shape())
      return no("a shape known only at run time");
  if (op.opcode() == op::RESIZE)
    if (auto bad = check_factors(op))
      return bad;
  return npu == Npu::EthosU85 ? std::nullopt : check_small(op);
}

} // namespace chute::tosa
