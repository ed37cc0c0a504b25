#pragma once

#include "ir/graph.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <string>
#include <string_view>
#include <vector>

/// What became of a program's scales and zero points (`--quant-report`).
namespace chute::quant {

/// Follows each quantization operator of the program to the tensor that carries its parameters in
/// the output. Passes record into the active one, where there is one; recording costs nothing
/// otherwise. One per conversion, used by the thread that runs the passes.
class Ledger {
public:
  enum class Change : u8 {
    Widened,     ///< stored in a wider type with the same or a shifted grid: no loss
    Requantized, ///< read with other parameters than it has
    Chosen,      ///< had none in the program
    Bias,        ///< scale = input scale × weight scale
    Rounding,    ///< a narrower range became the type's whole range
  };

  /// The one that passes of this thread record into; null when nobody asked for a report.
  static Ledger *active();
  /// Makes a ledger the active one for a scope.
  class Scope {
  public:
    explicit Scope(Ledger *ledger);
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    ~Scope();

  private:
    Ledger *before_;
  };

  /// `op` of the program is carried by `stored` with the parameters of its type. Null: no tensor
  /// carries them, for the given reason.
  void site(const ir::Graph &graph, const ir::Op &op, const ir::Value *stored,
            std::string_view reason = {});
  /// `to` holds from now on what `from` held.
  void moved(const ir::Value *from, const ir::Value *to);
  /// `op`'s operand or result is stored as `to`, not as `from` (invalid: as reals).
  void change(const ir::Graph &graph, const ir::Op &op, Change what, ir::Type from, ir::Type to);
  /// `op` computes on reals.
  void left(const ir::Op &op, std::string_view reason);

  /// Looks up in the finished graph where everything is.
  void finish(const ir::Graph &graph);
  std::string to_json() const;
  std::string to_text() const;

  struct Place {
    std::string name; ///< of the value or the node
    std::string op;
    std::string module;
    std::string source;
  };
  /// Operators that a pass may remove.
  class Pending {
  public:
    Pending(const ir::Graph &graph, const std::vector<const ir::Op *> &ops);

  private:
    friend class Ledger;
    std::vector<std::pair<u32, Place>> ops_; // by operator id
  };
  /// Those whose id is not `kept` are carried by no tensor.
  void dropped(const Pending &pending, const std::vector<bool> &kept, std::string_view reason);

private:
  struct Site {
    Place place;
    std::string parameters;
    u32 value = ~0u; ///< what carries it; ~0: nothing
    std::string fate;
    std::string tensor;
    std::string reason;
  };
  struct Changed {
    Change what;
    Place place;
    std::string from, to;
  };
  struct Real {
    Place place;
    std::string reason;
  };

  static Place place_of(const ir::Graph &graph, const ir::Op &op);
  u32 now(u32 value) const;
  const char *text_of(Change c) const;

  std::vector<Site> sites_;
  std::vector<Changed> changes_;
  std::vector<Real> reals_;
  boost::unordered_flat_map<u32, u32> moved_;           // by value id; looked up only
  boost::unordered_flat_map<u32, std::string> reasons_; // by operator id; looked up only
};

/// "i16, scale 0.02, zero point 0"; "u8, 32 scales along dimension 0 (0.01 to 0.03)"; "f32".
std::string describe(ir::Type t);

} // namespace chute::quant
