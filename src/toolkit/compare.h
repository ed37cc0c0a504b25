#pragma once

#include "eval/tensor.h"
#include "ir/graph.h"
#include "support/result.h"

#include <limits>
#include <span>
#include <string>
#include <vector>

namespace chute::toolkit {

/// Two numbers agree when |a - b| <= absolute + relative · |a|; NaN agrees with NaN, an infinity
/// with itself.
struct Tolerance {
  double absolute = 1e-5;
  double relative = 1e-4;
};

/// How far two tensors are apart, as the real numbers that they stand for.
struct Difference {
  bool comparable = true; ///< false: other shapes, or nothing that is a number
  std::string problem;    ///< why not
  i64 elements = 0;
  i64 beyond = 0;     ///< elements that do not agree
  double max_abs = 0; ///< largest |a - b|; infinity when one is NaN and the other not
  double max_rel = 0; ///< largest |a - b| / |a| over elements with a != 0
  /// 10 log10(Σ a² / Σ (a - b)²) in decibels; infinity for equal tensors.
  double sqnr_db = std::numeric_limits<double>::infinity();

  bool within() const { return comparable && beyond == 0; }
};

/// `a` is the reference. Types tell the quantization and may be those of other element types.
Difference measure(const eval::Tensor &a, ir::Type type_a, const eval::Tensor &b, ir::Type type_b,
                   const Tolerance &tolerance);

struct OutputDifference {
  std::string name_a;
  std::string name_b;
  Difference difference;
};

/// One pair of aligned tensors inside.
struct LayerDifference {
  std::string op_a;
  std::string op_b;
  std::string name_a;
  std::string name_b;
  std::string module_path;
  u64 step = 0;         ///< position in the order in which `a` computes
  bool by_name = false; ///< paired by name alone, as across dialects
  Difference difference;
};

struct CompareOptions {
  Tolerance tolerance;
  bool layers = false; ///< also compare aligned tensors inside; keeps those of `a` in memory
  int threads = 0;
};

struct CompareReport {
  std::vector<OutputDifference> outputs;
  std::string problem; ///< the numbers of outputs differ
  /// In the order of `a`; those whose shapes differ are left out, and, where all outputs agree,
  /// those that differ and were paired by name alone: a rewrite gave the name to another value.
  std::vector<LayerDifference> layers;
  i64 first_parting = -1; ///< index into `layers`: the first beyond the tolerance

  bool within() const;
};

/// Runs both graphs on the same inputs (one tensor per argument of `a`, in order) and compares
/// their outputs by position, tensors inside by toolkit/align.h and, where that finds nothing, by
/// names that occur once. Both graphs belong to one Context. Errors: those of eval::evaluate, and
/// `toolkit.compare.inputs` when `b` takes other inputs.
Result<CompareReport> compare(const ir::Graph &a, const ir::Graph &b,
                              std::span<const eval::Tensor> inputs, const CompareOptions &options);

/// The inputs of `a` as `b` takes them: by name where all names agree, otherwise by position;
/// fitted to the element types. Error `toolkit.compare.inputs`.
Result<std::vector<eval::Tensor>> inputs_for(const ir::Graph &b, const ir::Graph &a,
                                             std::span<const eval::Tensor> inputs);

/// Indices of the outputs that the caller of a program gets: all but new contents of buffers and
/// inputs, and literals.
std::vector<size_t> user_outputs(const ir::Graph &graph);

} // namespace chute::toolkit
