#pragma once

#include "ir/graph.h"
#include "support/counters.h"

#include <vector>

/// Orders of a graph's operators and the memory that activations take in them. Internal to the
/// pass `order-for-memory`, apart for its tests.
namespace chute::circle {

/// Operators of the body as steps, numbered as they run; their results as stretches of memory
/// ("storages": a RESHAPE lies in its operand's). Counted as `chute plan` counts by default: a
/// storage lives from the step that defines it to the last that touches it, inputs from the first
/// step, outputs to the last.
class MemoryOrder {
public:
  explicit MemoryOrder(const ir::Graph &graph, WorkCounters &work);

  /// One range of steps in a new order.
  struct Change {
    u32 first = 0;
    std::vector<u32> order; ///< of the steps first .. first + order.size() - 1
  };

  /// Bytes that live at the fullest step of the order that the graph has.
  u64 peak() const { return peak_; }
  /// No order needs less: the largest of what one step touches, all inputs, all outputs.
  u64 bound() const { return bound_; }

  /// Ranges whose new order lowers the peak; disjoint, ascending, none when nothing is gained.
  /// Ranges are what lies between steps that one storage connects; in each the best of three list
  /// schedules (smallest growth first, the same from the end, Sethi-Ullman) is taken if it beats
  /// the order that is there. Only as many ranges change as the peak needs. O(n log n).
  std::vector<Change> improve();

  /// The peak after improve().
  u64 improved_peak() const { return improved_; }

  const std::vector<ir::Op *> &steps() const { return steps_; }

private:
  static constexpr u32 kNone = ~u32{0};

  /// Lists of numbers per number, in one array.
  struct Lists {
    std::vector<u32> begin{0};
    std::vector<u32> items;
    std::span<const u32> operator[](u32 i) const {
      return {items.data() + begin[i], items.data() + begin[i + 1]};
    }
    void close() { begin.push_back(static_cast<u32>(items.size())); }
  };

  struct Storage {
    u64 bytes = 0;
    u32 definer = kNone; ///< none: an input
    u32 last = 0;        ///< step that touches it last
    bool output = false;
  };

  void collect(const ir::Graph &graph);
  void measure();
  void add_step(ir::Op &op, u32 step);
  u32 storage_of(const ir::Value *v) const;
  u64 simulate(u32 first, u32 end, std::span<const u32> order);
  std::vector<u32> ranges() const;
  std::vector<u32> best_order(u32 first, u32 end, u64 &peak);
  std::vector<u32> forward(u32 first, u32 end);
  std::vector<u32> backward(u32 first, u32 end);
  std::vector<u32> sethi_ullman(u32 first, u32 end);

  bool dies(u32 s, u32 end) const { return !storages_[s].output && storages_[s].last < end; }
  bool enters(u32 s, u32 first) const {
    return storages_[s].definer == kNone || storages_[s].definer < first;
  }

  WorkCounters *work_;
  std::vector<ir::Op *> steps_;
  std::vector<u32> step_of_; // by Op::id
  std::vector<u32> storage_; // by Value::id
  std::vector<Storage> storages_;
  std::vector<u64> own_work_; // by step: memory of its regions
  std::vector<u64> defined_;  // by step: bytes of the storages that it defines
  std::vector<u64> held_;     // by step: bytes of the storages of its results
  Lists touched_;             // by step: storages, each once
  Lists needs_, needed_by_;   // by step: steps
  std::vector<u64> crossing_; // by step: bytes that live before it and at it or later
  std::vector<u32> narrow_;   // by step: storages of steps, no outputs, that live across
  std::vector<u64> at_;       // by step: bytes that live while it runs
  u64 unused_inputs_ = 0;
  u64 peak_ = 0, bound_ = 0, improved_ = 0;
  u32 last_effect_ = kNone;
  // Scratch of one schedule, by storage; what it used is reset afterwards.
  std::vector<u32> left_, who_;
  std::vector<u8> live_;
};

} // namespace chute::circle
