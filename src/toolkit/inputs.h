#pragma once

#include "eval/tensor.h"
#include "ir/graph.h"
#include "support/diag.h"
#include "support/result.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace chute::toolkit {

/// Arrays by name, as `.npz` files have them; a `.npy` has the name `in<position>`.
using NamedTensors = std::vector<std::pair<std::string, eval::Tensor>>;

/// Reads `.npz` and `.npy` files. Errors as of eval::read_numpy.
Result<NamedTensors> read_inputs(std::span<const std::string> paths);

/// One tensor per argument, in order. From `arrays` by the input's name or as `in<position>`,
/// fitted to the input's type; when there are none, made up from `seed`: floats uniform in [-1, 1),
/// integers in [0, 8), quantized integers within 100 steps of their zero point, Bools fair,
/// symbolic sizes at the smallest value of their range, but at least 2 where the range allows it.
/// The same graph interface and seed give the same tensors. Notes (`run.input.converted`) go to
/// `diagnostics`. Errors: `run.input.missing`, `run.input.kind`.
Result<std::vector<eval::Tensor>> gather_inputs(const ir::Graph &graph, const NamedTensors &arrays,
                                                u64 seed, Diagnostics &diagnostics);

/// `given` with the element type that the input takes, where both are floating point (NumPy has no
/// bf16, and a Circle file takes f32 where its program took f16 or f64), or where real numbers meet
/// a quantized input. Anything else comes back unchanged.
eval::Tensor fit_input(const eval::Tensor &given, const ir::InputInfo &input);

} // namespace chute::toolkit
