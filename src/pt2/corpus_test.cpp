// Every archive of the shared corpus is read, or refused for the stated reason. The corpus is not
// part of the repository: without it these tests are skipped.

#include "aten/ops.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "pt2/reader.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>

namespace chute::pt2 {
namespace {

namespace fs = std::filesystem;

fs::path shared() {
  if (const char *env = std::getenv("CHUTE_SHARED"))
    return env;
  return fs::path(CHUTE_SOURCE_DIR).parent_path() / "shared";
}

std::vector<fs::path> archives(const fs::path &below) {
  std::vector<fs::path> out;
  if (fs::is_directory(below))
    for (const auto &e : fs::recursive_directory_iterator(below))
      if (e.path().extension() == ".pt2")
        out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

/// Reads; the text form must survive a round trip. Returns the error's code, or "".
std::string read_code(const fs::path &path) {
  ir::Context ctx;
  Diagnostics diagnostics;
  Summary summary;
  const auto graph = read(ctx, path.string(), diagnostics, {}, &summary);
  if (!graph) {
    EXPECT_FALSE(graph.error().object.empty());
    return graph.error().code;
  }
  ir::verify(**graph, diagnostics);
  for (const Diagnostic &d : diagnostics.all())
    ADD_FAILURE() << path << ": " << to_text(d);
  EXPECT_NE((*graph)->return_op(), nullptr);
  const std::string text = ir::print(**graph);
  ir::Context again_ctx;
  const auto again = ir::parse(again_ctx, text);
  EXPECT_TRUE(again.has_value()) << path << ": " << to_text(again.error());
  if (again) {
    EXPECT_EQ(ir::print(**again), text) << path;
  }
  return {};
}

TEST(Corpus, Samples) {
  const auto files = archives(shared() / "corpus/pt2_samples");
  if (files.empty())
    GTEST_SKIP() << "no shared corpus";
  aten::register_dialect();
  const std::map<std::string, std::string> kRefused = {
      {"ao_Float8WeightOnlyConfig", "pt2.weight.pickle"},
      {"ao_Int8DynamicActivationInt8WeightConfig", "pt2.weight.pickle"},
      {"ao_Int8WeightOnlyConfig", "pt2.weight.pickle"},
      {"ao_IntxWeightOnlyConfig", "pt2.weight.pickle"},
      {"broken_failed_save", "pt2.archive.kind"},
  };
  for (const fs::path &file : files) {
    const auto it = kRefused.find(file.stem().string());
    EXPECT_EQ(read_code(file), it == kRefused.end() ? "" : it->second) << file;
  }
}

TEST(Corpus, ConversionCases) {
  auto files = archives(shared() / "corpus/tico");
  const auto arm = archives(shared() / "corpus/arm");
  files.insert(files.end(), arm.begin(), arm.end());
  if (files.empty())
    GTEST_SKIP() << "no shared corpus";
  aten::register_dialect();
  for (const fs::path &file : files)
    EXPECT_EQ(read_code(file), "") << file;
}

} // namespace
} // namespace chute::pt2
