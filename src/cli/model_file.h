#pragma once

#include "ir/graph.h"
#include "support/mapped_file.h"
#include "support/result.h"

#include <memory>
#include <string>

namespace chute::cli {

enum class FileFormat : u8 { Pt2, Circle, Tosa, Text };

/// A program of any format that chute reads.
struct Model {
  FileFormat format = FileFormat::Text;
  u64 file_bytes = 0;
  std::string
      producer; ///< "torch 2.13.0, schema 8.20" or what the file says of itself; may be empty
  std::unique_ptr<ir::Graph> graph;
};

/// By content: a zip archive is a `.pt2`, `CIR0` or `TFL3` at byte 4 a Circle or TFLite file,
/// `TOSA` there a TOSA file, anything else the text form.
FileFormat tell_format(std::string_view head);

/// `context` outlives the model. Warnings go to `diagnostics`.
Result<Model> load_model(ir::Context &context, const std::string &path, u64 threads,
                         Diagnostics &diagnostics);

} // namespace chute::cli
