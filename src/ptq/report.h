#pragma once

#include "ptq/ptq.h"

#include <string>

namespace chute::ptq {

struct Sizes {
  u64 float_bytes = 0; ///< of the float Circle file
  u64 bytes = 0;       ///< of the one that was written
};

/// For people: outputs, sizes, the least exact layers and everything that stays in float.
std::string report_text(const Report &report, const Options &options, const Sizes &sizes);

/// One JSON object: scheme, observer, io_dtype, samples, outputs [{name, sqnr_db}], float_bytes,
/// bytes, quantize_ops, dequantize_ops, weights, adjusted (by GPTQ), layers [{name, op, module,
/// type, scale, zero_point, min, max, sqnr_db}], float [{name, op, module, reason}]. An sqnr_db is
/// null where nothing was compared and "exact" where there is no error.
std::string report_json(const Report &report, const Options &options, const Sizes &sizes);

} // namespace chute::ptq
