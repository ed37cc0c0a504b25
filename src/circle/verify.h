#pragma once

#include "support/diag.h"
#include "support/result.h"

#include <cstddef>
#include <span>
#include <string>

namespace chute::circle {

/// What a check cost, without a clock.
struct VerifyWork {
  u64 tensors = 0;
  u64 operators = 0;
  u64 operands = 0;  ///< with results and intermediates
  u64 contracts = 0; ///< computed: of one operator of every kind, and of all of a wrong kind
};

struct VerifyOptions {
  /// Recompute every operator's result types from operands and options
  /// (`circle.operator.contract`).
  bool contracts = true;
  /// After that many findings the check ends with the note `circle.verify.more`.
  size_t max_findings = 1000;
  VerifyWork *work = nullptr; ///< filled when given
};

/// Checks a `.circle` or `.tflite` file and reports findings in file order, each with a stable code
/// and an object path ("model.subgraphs[0].operators[3].inputs[1]"). Errors mean that a runtime may
/// reject the file or compute something else; warnings are hygiene. Linear in the file's size.
///
/// Errors
///   circle.file.identifier        not a Circle or TFLite file
///   circle.file.flatbuffer        damaged
///   circle.file.excess            parts are shared so often that the model is larger than its file
///   circle.model.subgraphs        no subgraph
///   circle.model.buffers          no buffers, or buffer 0 is not empty
///   circle.model.operator_codes   the table of operator codes is missing
///   circle.index                  an index is out of range
///   circle.buffer.external        offset and size of an external payload do not fit the file
///   circle.tensor.type            an element type that the schema does not have
///   circle.tensor.shape           a negative dimension, more than 255 dimensions or 2^56 elements,
///   a
///                                 shape_signature that contradicts the shape
///   circle.tensor.size            a constant's bytes are not those of its shape and element type
///   circle.tensor.quantization    scales, zero points, axis do not fit each other or the tensor
///   circle.tensor.producers       a tensor is produced twice, or although it is an input or a
///   constant circle.tensor.undefined       a tensor is used but never defined
///   circle.operator.order         an operator uses a tensor that a later one produces (or a cycle)
///   circle.operator.code          an operator code that the schema does not have
///   circle.operator.arity         missing operands, too many of them, a wrong number of results
///   circle.operator.options       an options table of another operator
///   circle.operator.option        a field outside of its enumeration or range
///   circle.operator.contract      declared result types are not those of operands and options
///   circle.operator.quantization  weights have their scales along another axis than the channels
///   circle.subgraph.recursion     subgraphs call each other in a circle
///   circle.subgraph.interface     a called subgraph has other inputs or outputs than the call
///   circle.signature              a signature names a tensor that is no input (output) of its
///   subgraph
/// Warnings
///   circle.io.duplicate           a tensor is listed twice among inputs or outputs
///   circle.tensor.name            two tensors of a subgraph have one name
///   circle.tensor.dynamic         shape_signature is -1 where the shape is not 1
///   circle.operator.quantization  an operator that moves elements changes their scale, a bias that
///                                 does not count in input scale times weight scale
///   circle.signature.key          two signatures have one key
///   circle.unused.tensors, circle.unused.buffers, circle.unused.operator_codes
void verify(std::span<const std::byte> bytes, Diagnostics &diagnostics,
            const VerifyOptions &options = {});

/// The same for a file; one that can not be opened is the finding `file.open`.
void verify_file(const std::string &path, Diagnostics &diagnostics,
                 const VerifyOptions &options = {});

} // namespace chute::circle
