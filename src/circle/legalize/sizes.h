#pragma once

#include "ir/graph.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <optional>
#include <vector>

/// Sizes as run-time values. Internal to circle/legalize.
namespace chute::circle {

/// Where each symbol of a program can be read: a dimension of an argument, of a result whose size
/// depends on data, or a number. Made once per run by one walk over the graph.
///
/// A dimension may be an expression in one unknown symbol (`2*s0 + 1`), which is solved for it.
/// Arguments come first. Results are kept alive and followed through rewrites by one operator at
/// the end of their region, until release().
class SizeSources {
public:
  struct Source {
    ir::Value *value = nullptr; ///< a tensor, or a number (rank 0) when dim is negative
    int dim = -1;
    /// symbol = (dimension - offset) / factor; `offset` holds symbols of other sources only.
    ir::SymInt offset = 0;
    i64 factor = 1;
  };

  /// Also turns numbers (Int, Float, Bool values) into rank-0 tensors of i64, f32 and bool.
  void collect(ir::Graph &graph);
  void release(ir::Graph &graph);

  /// Where operators of `region` read the symbol; nullopt when nothing there has it.
  std::optional<Source> find(const ir::Region &region, ir::SymInt symbol) const;

private:
  struct Entry {
    Source source;
    i32 pinned = -1; ///< operand of the region's pin that is the value now
  };
  struct PerRegion {
    boost::unordered_flat_map<i64, Entry> entries; // by SymInt::raw
    std::vector<ir::Value *> to_pin;
    ir::Op *pin = nullptr;
  };

  void add_dim(const ir::SymTable &sym, PerRegion &r, ir::Value *value, int dim, ir::SymInt size);
  void add_value(const ir::Context &ctx, PerRegion &r, ir::Value *value);

  boost::unordered_flat_map<const ir::Region *, PerRegion> regions_;
  std::vector<ir::Region *> order_;
};

} // namespace chute::circle
