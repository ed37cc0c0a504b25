#pragma once

#include "ir/op.h"

#include <string>
#include <vector>

namespace chute::ptq {

/// How an operator of the Circle dialect is quantized.
enum class Treatment : u8 {
  Own,   ///< each operand has its own parameters, each result those that were observed
  Same,  ///< results and moved operands share one set of parameters
  Index, ///< quantized operands, results that are no real numbers (ARG_MAX)
  Float, ///< computes in float
};

/// Operands with a part of their own, by position; -1: the operator has none.
struct Roles {
  int data = 0;
  int weight = -1;
  int bias = -1;
  int channel = 0; ///< of the weights: the dim of output channels
};

struct Rule {
  Treatment treatment = Treatment::Float;
  Roles roles;
  std::string reason; ///< why it is Float
};

/// By operator alone; what speaks against one of them in a graph is the planner's matter.
Rule rule_of(const ir::Op &op);

/// Whether a value holds real numbers: for a Same operator, those are the operands that it moves;
/// sizes, positions and conditions are of integers and Bools.
bool is_real(const ir::Value *v);

} // namespace chute::ptq
