#pragma once

#include "circle/quantize/storage.h"
#include "pass/pass.h"
#include "quant/ledger.h"
#include "quant/params.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <string>
#include <utility>
#include <vector>

namespace chute::circle {

/// Turns single operators on reals into operators on stored integers. Internal to fold-quantize.
class OpConverter {
public:
  explicit OpConverter(pass::PassContext &ctx) : ctx_(ctx), graph_(ctx.graph) {}

  /// Makes `p`, whose result only QUANTIZE reads, an operator on integers: its operands become the
  /// stored values behind their DEQUANTIZE and its result gets the parameters of the finest of
  /// those QUANTIZE. They stay: one of the same type changes nothing then, another requantizes.
  /// Returns false, and says why in the note, when the operator has no integer form.
  bool to_integers(ir::Op &p);

  /// The integers of a constant of reals, as a value before `position`; null when `x` is none.
  ir::Value *constant(ir::Op &position, const ir::Value *x, ir::Type type);
  /// The same when every number lies on the grid of `like`; null otherwise.
  ir::Value *constant_on_grid(ir::Op &position, const ir::Value *x, ir::Type like);
  /// The constant `stored_constant` read as reals and stored as `type`, which is no wider; null
  /// when it is none.
  ir::Value *requantized(ir::Op &position, const ir::Value *stored_constant, ir::Type type);

  /// Signed storage with zero point 0: negation stays on the grid but for the lowest value.
  static bool is_symmetric(ir::Type t);
  /// Whether arithmetic over stored integers makes this value.
  static bool may_convert(const ir::Value *v);

  /// Notes that `op` stays on reals; `why` is a literal.
  void left(const ir::Op &op, const char *why);
  /// Adds one note per reason.
  void report();

private:
  /// What an operand becomes.
  struct Plan {
    u32 operand = 0;
    ir::Value *value = nullptr;            ///< the stored integers, when they are a value already
    ir::Type type;                         ///< requantized to, when it differs from the value's
    const ir::Constant *numbers = nullptr; ///< reals to be stored as `type`
  };

  bool plan_input(ir::Op &p, u32 operand, ir::ElementType width);
  bool plan_constant(ir::Op &p, u32 operand, ir::ElementType width);
  /// Parameters for a constant that has none, or one scale per channel where one per tensor is due.
  bool plan_numbers(ir::Op &p, u32 operand, ir::ElementType width, const ir::Constant &c);
  bool plan_weighted(ir::Op &p, const RoleInfo &role, ir::ElementType width);
  bool plan_bias(ir::Op &p, const RoleInfo &role, ir::ElementType width, ir::Type input,
                 ir::Type weight);
  void apply(ir::Op &p);
  void record(const ir::Op &p, const Plan &step);
  /// The stored constant of `numbers`, made once per constant and type.
  const ir::Constant *store(const ir::Constant &numbers, ir::Type type);

  pass::PassContext &ctx_;
  ir::Graph &graph_;
  quant::Ledger *ledger_ = quant::Ledger::active();
  std::vector<Plan> plan_;
  boost::unordered_flat_map<std::pair<const ir::Constant *, u32>, const ir::Constant *>
      stored_constants_; // looked up only

  struct Reason {
    const char *why;
    u64 count;
    Diagnostic first;
  };
  std::vector<Reason> reasons_;
};

} // namespace chute::circle
