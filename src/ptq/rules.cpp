#include "ptq/rules.h"

#include "circle/ops.h"
#include "ir/op_def.h"
#include "ir/type.h"

#include <algorithm>

namespace chute::ptq {

namespace op = circle::op;

namespace {

struct Row {
  ir::OpCode code;
  Treatment treatment;
  Roles roles = {};
};

constexpr Roles kFilter{0, 1, 2, 0};
constexpr Roles kDepthwise{0, 1, 2, 3};
constexpr Roles kTransposed{2, 1, 3, 0};
constexpr Roles kConv3d{0, 1, 2, 4};

// Movement operators are Same by their trait. Everything that is not here stays in float.
const Row kRows[] = {
    {op::FULLY_CONNECTED, Treatment::Own, kFilter},
    {op::CONV_2D, Treatment::Own, kFilter},
    {op::DEPTHWISE_CONV_2D, Treatment::Own, kDepthwise},
    {op::TRANSPOSE_CONV, Treatment::Own, kTransposed},
    {op::CONV_3D, Treatment::Own, kConv3d},
    {op::BATCH_MATMUL, Treatment::Own},
    {op::ADD, Treatment::Own},
    {op::SUB, Treatment::Own},
    {op::MUL, Treatment::Own},
    {op::DIV, Treatment::Own},
    {op::POW, Treatment::Own},
    {op::SQUARED_DIFFERENCE, Treatment::Own},
    {op::ADD_N, Treatment::Own},
    {op::ABS, Treatment::Own},
    {op::NEG, Treatment::Own},
    {op::EXP, Treatment::Own},
    {op::SQRT, Treatment::Own},
    {op::RSQRT, Treatment::Own},
    {op::SQUARE, Treatment::Own},
    {op::SIN, Treatment::Own},
    {op::COS, Treatment::Own},
    {op::ELU, Treatment::Own},
    {op::GELU, Treatment::Own},
    {op::HARD_SWISH, Treatment::Own},
    {op::LEAKY_RELU, Treatment::Own},
    {op::LOGISTIC, Treatment::Own},
    {op::TANH, Treatment::Own},
    {op::PRELU, Treatment::Own},
    {op::RELU, Treatment::Own},
    {op::RELU6, Treatment::Own},
    {op::RELU_0_TO_1, Treatment::Own},
    {op::RELU_N1_TO_1, Treatment::Own},
    {op::SOFTMAX, Treatment::Own},
    {op::LOG_SOFTMAX, Treatment::Own},
    {op::L2_NORMALIZATION, Treatment::Own},
    {op::INSTANCE_NORM, Treatment::Own},
    {op::RMS_NORM, Treatment::Own},
    {op::ROPE, Treatment::Own},
    {op::MEAN, Treatment::Own},
    {op::SUM, Treatment::Own},
    {op::AVERAGE_POOL_2D, Treatment::Same},
    {op::MAX_POOL_2D, Treatment::Same},
    {op::MAXIMUM, Treatment::Same},
    {op::MINIMUM, Treatment::Same},
    {op::REDUCE_MAX, Treatment::Same},
    {op::REDUCE_MIN, Treatment::Same},
    {op::RESIZE_BILINEAR, Treatment::Same},
    {op::RESIZE_NEAREST_NEIGHBOR, Treatment::Same},
    {op::SELECT, Treatment::Same},
    {op::SELECT_V2, Treatment::Same},
    {op::DYNAMIC_UPDATE_SLICE, Treatment::Same},
    {op::ARG_MAX, Treatment::Index},
    {op::ARG_MIN, Treatment::Index},
    {op::SHAPE, Treatment::Index},
    {op::RANK, Treatment::Index},
};

std::string reason_of(const ir::Op &o) {
  if (o.num_regions())
    return "control flow runs in float";
  if (o.has(ir::trait::kComparison))
    return "it compares exact numbers";
  if (o.opcode() == op::CAST)
    return "it converts between element types";
  if (o.opcode() == op::FLOOR || o.opcode() == op::CEIL || o.opcode() == op::ROUND ||
      o.opcode() == op::FLOOR_DIV || o.opcode() == op::FLOOR_MOD || o.opcode() == op::SIGN)
    return "a step function turns a rounding error into a whole step";
  if (o.has(ir::trait::kRandom))
    return "it makes random numbers";
  if (o.has(ir::trait::kEffect))
    return "it has state or effects";
  return "no quantized form of it is known";
}

} // namespace

Rule rule_of(const ir::Op &o) {
  for (const Row &r : kRows)
    if (r.code == o.opcode())
      return {r.treatment, r.roles, {}};
  if (circle::is_circle(o.opcode()) && o.has(ir::trait::kMovement) && !o.num_regions())
    return {Treatment::Same, {}, {}};
  return {Treatment::Float, {}, reason_of(o)};
}

bool is_real(const ir::Value *v) {
  return v && v->type().is_tensor() && ir::is_float(v->type().element());
}

} // namespace chute::ptq
