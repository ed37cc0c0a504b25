#pragma once

#include "circle/reader.h"
#include "cli/command.h"
#include "cli/model_file.h"

#include <optional>
#include <string>

namespace chute::cli {

/// A program together with what its file says beside it, for verbs that read a model, change it and
/// write it again.
struct GraphFile {
  FileFormat format = FileFormat::Circle;
  circle::Model model;
  u64 file_bytes = 0;
};

/// Reads a `.circle`, `.tflite` or text IR file, or standard input (`-`). A `.pt2` archive is
/// lowered to Circle first when `lower` is set, and otherwise read as it is. Warnings go to the
/// session; errors as from the readers. `subgraph`: of a Circle file, that one with all it calls
/// instead of the whole.
Result<GraphFile> open_graph(ir::Context &ctx, const std::string &path, bool lower,
                             Session &session, std::optional<u32> subgraph = {});

/// Writes a `.circle`, or text IR when the path ends in `.ir` or when a text goes to standard
/// output (`-`).
Status save_graph(const GraphFile &file, const std::string &path);

/// What was written, for people: to standard error when the file itself goes to standard output.
void say(const Session &session, const std::string &output, const std::string &text,
         const std::string &json);

} // namespace chute::cli
