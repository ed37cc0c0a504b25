#pragma once

#include "ptq/plan.h"
#include "ptq/rounder.h"

namespace chute::ptq {

enum class IoType : u8 {
  Float,     ///< inputs and outputs keep their types; QUANTIZE and DEQUANTIZE stand behind them
  Quantized, ///< those of quantized operators become quantized themselves
};

struct ApplyStats {
  u64 quantize_ops = 0;   ///< QUANTIZE that were inserted
  u64 dequantize_ops = 0; ///< DEQUANTIZE that were inserted
  u64 adjusted = 0;       ///< weights that the rounder chose
};

/// Quantizes `graph` by the plan, which was made of a graph with the same ids: types of values,
/// constants, and conversions where a value is needed in another form than it has. Values that were
/// there before keep their ids. Constants that several operators use in the same form are made
/// once. `rounder` chooses the integers of weights; null rounds to nearest. Errors: eval.quantized,
/// those of the rounder.
Status apply(ir::Graph &graph, const Plan &plan, IoType io, WeightRounder *rounder,
             ApplyStats &stats);

} // namespace chute::ptq
