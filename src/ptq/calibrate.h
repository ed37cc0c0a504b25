#pragma once

#include "eval/tensor.h"
#include "ir/graph.h"
#include "ptq/observer.h"
#include "support/result.h"

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace chute::ptq {

/// Inputs of one run, one tensor per argument of the body.
using Sample = std::vector<eval::Tensor>;

/// The samples that NumPy arrays hold for a program: arrays carry the names of its inputs, or in0,
/// in1, … by position. An array with one more dim than its input holds one sample per index of the
/// first dim; then all of them do, with the same number. Floats, and integers among each other, are
/// converted to the input's element type.
/// Errors: kind Usage, quantize.sample.missing, quantize.sample.shape, quantize.sample.type.
Result<std::vector<Sample>> samples_of(const ir::Graph &graph,
                                       std::span<const std::pair<std::string, eval::Tensor>> arrays,
                                       const std::string &where);

/// What masks do to a graph: attention adds a huge negative number, or minus infinity, where a
/// score must not count, and a softmax makes a zero of it; padding before a maximum is the least
/// number there is. Those numbers say "nothing", so they must not stretch a range. A value is
/// masked when a constant that holds such numbers reaches it, and it reaches a softmax or a
/// maximum, through additions, selections and movements alone.
class Masks {
public:
  explicit Masks(const ir::Graph &graph);
  bool masked(const ir::Value &v) const { return threshold(v) != 0; }
  /// Whether `x` in the value `v` is a mask's number.
  bool is_mask(const ir::Value &v, float x) const {
    const float t = threshold(v);
    return t != 0 && !(x > t && x < -t);
  }
  /// The same for the constants that make `v`.
  float threshold(const ir::Value &v) const {
    return v.id() < threshold_.size() ? threshold_[v.id()] : 0;
  }

private:
  /// By Value::id: numbers from here on, on either side of zero, are masks; 0 where there are none.
  std::vector<float> threshold_;
};

/// Observers by value, of every f32 tensor of the body that is no constant.
class Ranges {
public:
  Ranges(const ir::Graph &graph, ObserverOptions options)
      : options_(options),
        masks_(graph),
        observers_(graph.num_value_ids()),
        tops_(graph.num_value_ids(), std::numeric_limits<float>::infinity()) {}

  /// Runs the graph once and looks at every value. Memory: what evaluation needs, and the
  /// observers. Errors: those of eval::evaluate, and quantize.not_finite (kind BadInput): NaN or
  /// infinity in a value that no mask explains.
  Status observe(const ir::Graph &graph, const Sample &sample, int threads);

  /// The least row maximum that a softmax saw in a masked value: whatever lies far enough below it
  /// counts for nothing in any row. Infinity when there was no row.
  float least_top(const ir::Value &v) const {
    return v.id() < tops_.size() ? tops_[v.id()] : std::numeric_limits<float>::infinity();
  }
  const Observer *of(const ir::Value &v) const {
    return v.id() < observers_.size() ? observers_[v.id()].get() : nullptr;
  }
  const Masks &masks() const { return masks_; }

private:
  ObserverOptions options_;
  Masks masks_;
  std::vector<std::unique_ptr<Observer>> observers_;
  std::vector<float> tops_;
};

/// How a person calls a value: its name, else that of the node that it comes from, else its number.
std::string name_of(const ir::Graph &graph, const ir::Value &v);

} // namespace chute::ptq
