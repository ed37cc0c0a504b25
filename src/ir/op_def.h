#pragma once

#include "ir/attr.h"
#include "support/ints.h"
#include "support/result.h"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace chute::ir {

class Context;
class Graph;
struct Op;

/// Index of an operator over all dialects. Each dialect has a fixed range; the constants
/// `aten::op::add_Tensor`, `circle::op::ADD`, … come from the dialect's table.
enum class OpCode : u16 {};
constexpr u16 index(OpCode c) { return static_cast<u16>(c); }

inline constexpr u16 kCoreBase = 0;
inline constexpr u16 kAtenBase = 64;
inline constexpr u16 kCircleBase = 2048;
inline constexpr u16 kTosaBase = 2560;
inline constexpr u16 kMaxOpCode = 3072;

/// Properties that generic passes rely on; a generic pass never lists operator names.
namespace trait {
using Set = u32;
inline constexpr Set kPure = 1u << 0; ///< no side effect, same operands give same results
inline constexpr Set kElementwise =
    1u << 1; ///< result element i depends on operands' element i (broadcast)
inline constexpr Set kCommutative = 1u << 2; ///< the first two operands may be swapped
inline constexpr Set kSameType = 1u << 3;    ///< result type equals the first operand's
inline constexpr Set kMovement =
    1u << 4;                          ///< moves elements, computes none (view, permute, slice, cat)
inline constexpr Set kView = 1u << 5; ///< torch: result may alias the first operand
inline constexpr Set kInPlace = 1u << 6; ///< torch: writes its first operand and returns it
inline constexpr Set kTerminator = 1u << 7;
inline constexpr Set kConstant = 1u << 8; ///< yields the tensor in its `value` attribute
inline constexpr Set kReduction = 1u << 9;
inline constexpr Set kComparison = 1u << 10; ///< result element type is Bool
inline constexpr Set kRandom = 1u << 11;     ///< never folded, never merged
inline constexpr Set kEffect = 1u << 12;     ///< must stay though its results are unused
inline constexpr Set kNoOp =
    1u << 13; ///< result equals the first operand in inference (alias, detach, …)
inline constexpr Set kCheck = 1u << 14;   ///< an assertion without meaning for inference; dropped
inline constexpr Set kRegions = 1u << 15; ///< holds regions (cond, while, map)
inline constexpr Set kIntToFloat =
    1u << 16; ///< promotion: integer operands give the default float type
inline constexpr Set kPromotes = 1u << 17; ///< operands take part in torch type promotion
inline constexpr Set kUnregistered = 1u << 18;
inline constexpr Set kQuantization = 1u << 19; ///< quantize, dequantize, fake-quantize: says how a
                                               ///< value is stored, so never folded away
} // namespace trait

enum class OperandArity : u8 { One, Optional, Variadic, VariadicOptional };

struct OperandSpec {
  std::string_view name;
  OperandArity arity = OperandArity::One;
};

/// Which attribute kinds a field takes. Scalar: Int, Float, Bool or Complex. Symbolic integers are
/// allowed wherever Int or Ints is.
enum class AttrType : u8 {
  Int,
  Float, ///< accepts Int, stored as Float
  Bool,
  String,
  Element,
  Scalar,
  Ints,
  Floats,
  Bools,
  Strings,
  Scalars, ///< Ints or Floats
  OptInts, ///< list of Int or None
  Constant,
  Type,
  Any,
};

struct AttrSpec {
  std::string_view name;
  AttrType type = AttrType::Any;
  bool nullable = false;    ///< None is a legal value
  bool has_default = false; ///< absent in the source means `default_text`
  Attr default_value = {};  ///< interned with the registry's own context when an array
};

struct ResultSpec {
  std::string_view name;
  bool variadic = false; ///< a list of tensors: any number of results
};

/// Recomputes the result types from operands, attributes and options. `op` has everything but right
/// result types. One Type per result is appended to `out` (for a variadic result as many as apply).
/// The error says which operand or attribute does not fit. Never reads op's result types.
using InferFn = Status (*)(const Op &op, Graph &graph, std::vector<Type> &out);
/// Constraints beyond arity and types of attributes.
using VerifyFn = Status (*)(const Op &op, const Graph &graph);

/// One row of a dialect's table.
struct OpDef {
  std::string_view name; ///< full name with dialect: "aten.add.Tensor", "circle.conv_2d"
  OpCode opcode{};
  trait::Set traits = 0;
  std::span<const OperandSpec> operands;
  std::span<const AttrSpec> attrs;
  std::span<const ResultSpec> results;
  InferFn infer = nullptr;
  VerifyFn verify = nullptr;

  bool has(trait::Set t) const { return (traits & t) == t; }
  /// Slot of the attribute of that name, or -1.
  int attr_index(std::string_view attr) const;
  /// Number of operands in the table's sense that are variadic.
  int variadic_operands() const;
};

/// What sweeps over a graph ask of every operator, dense by opcode: no look at the row itself.
struct OpFacts {
  trait::Set traits = 0;
  u8 variadic = 0; ///< operands of the row that are variadic
};

/// All dialects' tables. Filled once at start-up by `register_core_dialect()`,
/// `aten::register_dialect()` and so on (idempotent), read-only afterwards.
class Registry {
public:
  static Registry &global();

  /// `defs` must outlive the registry; opcodes must be unique and below kMaxOpCode.
  void add(std::span<const OpDef> defs);
  const OpDef &def(OpCode code) const { return row(code); }
  bool known(OpCode code) const { return index(code) < kMaxOpCode && rows_[index(code)]; }

  static const OpDef &row(OpCode code) { return *rows_[index(code)]; }
  static const OpFacts &facts(OpCode code) { return facts_[index(code)]; }
  /// Lookup by full name; nullptr when unknown.
  const OpDef *find(std::string_view name) const;
  /// Every registered operator in order of opcode.
  std::vector<const OpDef *> all() const;
  /// Interns the arrays of default attribute values.
  Context &context() { return *context_; }

private:
  Registry();
  ~Registry();
  // One registry per process: static, so that reading a row needs no look at the object.
  static inline constinit const OpDef *rows_[kMaxOpCode] = {};
  static inline constinit OpFacts facts_[kMaxOpCode] = {};
  struct Names;
  Names *names_;
  Context *context_;
};

void register_core_dialect();

namespace core_op {
/// `core.constant() {value = <constant>}`: a tensor constant.
inline constexpr OpCode constant{kCoreBase + 0};
/// `core.state() {name, value}`: the current content of a mutable buffer (KV cache, counter) with
/// its initial value. Written back through an output of kind BufferMutation.
inline constexpr OpCode state{kCoreBase + 1};
/// `core.return(values…)`: terminator of every region.
inline constexpr OpCode ret{kCoreBase + 2};
/// `core.unregistered(values…) {target, arg_names, args}`: an operator no table has, kept with its
/// name and arguments; `args` is a List in which Operand(i) stands for operand i.
inline constexpr OpCode unregistered{kCoreBase + 3};
/// `core.size() {value}`: a symbolic integer expression as an Int value (outputs of a program).
inline constexpr OpCode size{kCoreBase + 4};
} // namespace core_op

} // namespace chute::ir
