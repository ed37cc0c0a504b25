#pragma once

#include "ir/op_check.h"
#include "ir/text_values.h"

#include <map>
#include <vector>

namespace chute::ir {

/// A value's name as written: a running number, or a name (interned).
struct NameRef {
  StringId name;
  u32 number = 0;
  size_t offset = 0;
};

/// An operator that was read up to its attributes, or up to one of its regions.
struct PendingOp {
  const OpDef *def = nullptr;
  size_t offset = 0;
  std::vector<NameRef> results;
  std::vector<Value *> operands;
  std::vector<size_t> groups; ///< sizes of bracketed lists; 1 for a plain operand
  bool grouped = false;
  std::vector<NamedAttr> attrs;
  std::vector<Region *> regions;
  const Constant *constant = nullptr; ///< of the short form `core.constant dense<…> : type`

  void clear() {
    results.clear();
    operands.clear();
    groups.clear();
    attrs.clear();
    regions.clear();
    grouped = false;
    constant = nullptr;
  }
};

/// Reads a graph: parse.cpp has the operators, parse_signature.cpp what stands before them.
class GraphReader : ValueReader {
public:
  using ValueReader::ValueReader;
  Result<std::unique_ptr<Graph>> run() {
    if (!graph())
      return tl::unexpected(std::move(error_));
    return std::move(graph_);
  }

private:
  struct Frame {
    PendingOp op;       // whose region is being read
    Region *region;     // that region's enclosing one
    size_t scope_start; // names defined inside the region start here
  };

  bool graph();
  bool name(std::string &out);
  bool inputs();
  bool input(std::vector<i64> &positions);
  bool input_keys(InputInfo &info, i64 &position);
  bool outputs();
  bool output();
  bool check_outputs();
  bool symbol();
  bool numbered_constant();
  bool body();
  bool op_start();
  bool op_operands();
  bool operand(Value *&out);
  bool attributes();
  bool result_types(std::vector<Type> &types);
  bool location(LocId &loc);
  bool finish();
  bool open_region();
  bool close_region();

  bool value_ref(NameRef &out);
  Value **slot(const NameRef &ref, bool create);
  bool define(const NameRef &ref, Value *value);

  struct DeclaredOutput {
    size_t offset;
    Type type;
  };
  std::vector<DeclaredOutput> declared_outputs_; // types given in the signature
  bool outputs_given_ = false;
  std::vector<Value *> by_name_; // by StringId
  std::vector<Value *> by_number_;
  std::map<u32, Value *> by_far_number_; // numbers far beyond what was defined
  u32 num_defined_ = 0;
  std::vector<NameRef> scope_; // names defined inside open regions
  std::vector<Frame> frames_;
  PendingOp op_;
  Region *region_ = nullptr;
  std::string text_;
  std::vector<Type> types_;
  bool types_given_ = false;
};

} // namespace chute::ir
