#include "circle/quantize/roles.h"

#include "circle/passes/match.h"

#include <array>

namespace chute::circle {

namespace {

using Table = std::array<RoleInfo, kNumOps>;

constexpr size_t at(ir::OpCode c) { return ir::index(c) - ir::kCircleBase; }

Table make_table() {
  Table t{};
  const auto set = [&](std::initializer_list<ir::OpCode> codes, RoleInfo info) {
    for (ir::OpCode c : codes)
      t[at(c)] = info;
  };
  set({op::RESHAPE,
       op::SQUEEZE,
       op::EXPAND_DIMS,
       op::TRANSPOSE,
       op::UNPACK,
       op::SLICE,
       op::STRIDED_SLICE,
       op::PAD,
       op::MIRROR_PAD,
       op::TILE,
       op::BROADCAST_TO,
       op::GATHER,
       op::GATHER_ND,
       op::REVERSE_V2,
       op::REVERSE_SEQUENCE,
       op::SPACE_TO_DEPTH,
       op::DEPTH_TO_SPACE,
       op::SPACE_TO_BATCH_ND,
       op::BATCH_TO_SPACE_ND,
       op::RESIZE_NEAREST_NEIGHBOR,
       op::SPLIT_V,
       op::TOPK_V2},
      {.role = Role::Move, .data = 0b1});
  set({op::SPLIT, op::EMBEDDING_LOOKUP}, {.role = Role::Move, .data = 0b10});
  set({op::PADV2}, {.role = Role::Move, .data = 0b101});
  set({op::SELECT, op::SELECT_V2}, {.role = Role::Move, .data = 0b110});
  set({op::DYNAMIC_UPDATE_SLICE}, {.role = Role::Move, .data = 0b11});
  set({op::CONCATENATION, op::PACK}, {.role = Role::Move, .data = kAllOperands});
  set({op::MAXIMUM, op::MINIMUM}, {.role = Role::Order, .data = 0b11});
  set({op::MAX_POOL_2D, op::REDUCE_MAX, op::REDUCE_MIN, op::RELU},
      {.role = Role::Order, .data = 0b1});
  set({op::NEG, op::ABS}, {.role = Role::Negate, .data = 0b1});
  set({op::ARG_MAX, op::ARG_MIN}, {.role = Role::Index, .data = 0b1});
  set({op::ADD,
       op::SUB,
       op::MUL,
       op::DIV,
       op::POW,
       op::FLOOR_DIV,
       op::FLOOR_MOD,
       op::SQUARED_DIFFERENCE,
       op::ADD_N,
       op::CEIL,
       op::COS,
       op::ELU,
       op::EXP,
       op::FLOOR,
       op::GELU,
       op::HARD_SWISH,
       op::LEAKY_RELU,
       op::LOG,
       op::LOGISTIC,
       op::PRELU,
       op::RELU6,
       op::RELU_0_TO_1,
       op::RELU_N1_TO_1,
       op::ROUND,
       op::RSQRT,
       op::SIGN,
       op::SIN,
       op::SQRT,
       op::SQUARE,
       op::TANH,
       op::SUM,
       op::MEAN,
       op::REDUCE_PROD,
       op::CUMSUM,
       op::SOFTMAX,
       op::LOG_SOFTMAX,
       op::L2_NORMALIZATION,
       op::INSTANCE_NORM,
       op::RMS_NORM,
       op::AVERAGE_POOL_2D,
       op::L2_POOL_2D,
       op::RESIZE_BILINEAR,
       op::BATCH_MATMUL},
      {.role = Role::Arithmetic});
  set({op::FULLY_CONNECTED, op::CONV_2D, op::CONV_3D}, {.role = Role::Weighted});
  t[at(op::CONV_3D)].channel = 4;
  set({op::DEPTHWISE_CONV_2D}, {.role = Role::Weighted, .channel = 3});
  set({op::TRANSPOSE_CONV}, {.role = Role::Weighted, .input = 2, .weight = 1, .bias = 3});
  return t;
}

} // namespace

RoleInfo role_of(const ir::Op &op) {
  static const Table table = make_table();
  if (!is_circle(op.opcode()))
    return {};
  RoleInfo r = table[at(op.opcode())];
  if ((r.role == Role::Move || r.role == Role::Order) && has_activation(op))
    r.role = op.opcode() == op::CONCATENATION ? Role::None : Role::Arithmetic;
  return r;
}

} // namespace chute::circle
