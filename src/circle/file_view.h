#pragma once

#include "circle/ops.h"
#include "schema/circle_generated.h"
#include "support/diag.h"
#include "support/result.h"

#include <cstddef>
#include <memory>
#include <span>

/// The bytes of a Circle or TFLite file and their structural check. Internal to reader and
/// verifier.
namespace chute::circle {

/// A file whose flatbuffer is well formed: every offset lies inside, every union is what it says.
struct FileView {
  std::span<const std::byte> bytes;
  const ::circle::Model *model = nullptr;
};

/// Checks the identifier ("CIR0" or "TFL3") and the flatbuffer. The number of tables is bounded by
/// the file's size, so that tables which share children without end are refused. Errors: kind
/// BadInput, `circle.file.identifier`, `circle.file.flatbuffer`.
Result<FileView> open_view(std::span<const std::byte> bytes);

/// Numbers in a flatbuffer are read in place, so its first byte has to lie on a multiple of 16, as
/// mapped files and allocations do. Other bytes are copied, and `bytes` then views the copy that is
/// returned.
std::shared_ptr<const std::byte[]> aligned_copy(std::span<const std::byte> &bytes);

/// A buffer's payload: inline, external, or empty. Only after the structure was checked.
std::span<const std::byte> payload(const FileView &file, u32 buffer);

/// The operator code in force: files older than 0.5 have the deprecated field alone.
i32 effective_code(const ::circle::OperatorCode &code);

/// The options table of an operator, null when absent; `def` tells which union holds it.
const flatbuffers::Table *options_table(const ::circle::Operator &op, const OptionsDef &def);

/// Bytes of a custom operator's options, wherever they lie.
std::span<const std::byte> custom_options(const FileView &file, const ::circle::Operator &op);

/// Whether a tensor holds data of its own: not variable, a buffer with content, or no elements.
bool is_constant(const FileView &file, const ::circle::Tensor &tensor);

struct StructureOptions {
  /// For a reader: only what would keep it from building a graph, and no warnings.
  bool only_fatal = false;
  /// After that many findings the check ends with a note.
  size_t max_findings = 1000;
};

/// Indices, arity, types, sizes, producers, order, signatures, references between subgraphs,
/// hygiene. Linear in the file's size whatever the file shares. The codes are listed in
/// circle/verify.h.
void check_structure(const FileView &file, const StructureOptions &options,
                     Diagnostics &diagnostics);

} // namespace chute::circle
