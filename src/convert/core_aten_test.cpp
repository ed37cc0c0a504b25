// The core ATen pipeline by numbers: every program of the shared corpus that PyTorch ran is read,
// reduced to the core and evaluated; the results are PyTorch's within the case's tolerance.
// Skipped without the corpus.

#include "aten/ops.h"
#include "aten/passes/passes.h"
#include "eval/evaluator.h"
#include "eval/npz.h"
#include "ir/text.h"
#include "pass/pass.h"
#include "pt2/reader.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace chute::convert {
namespace {

namespace fs = std::filesystem;

fs::path shared() {
  if (const char *env = std::getenv("CHUTE_SHARED"))
    return env;
  return fs::path(CHUTE_SOURCE_DIR).parent_path() / "shared";
}

std::string text_of(const fs::path &file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}

/// The number behind `"key":` in a case's JSON.
double number_after(const std::string &json, const std::string &key) {
  const size_t at = json.find("\"" + key + "\":");
  return at == std::string::npos ? 0 : std::strtod(json.c_str() + at + key.size() + 3, nullptr);
}

/// What differs; empty when nothing does.
std::string difference(const eval::Tensor &got, const eval::Tensor &want, double rtol,
                       double atol) {
  if (got.element() != want.element())
    return "element types differ";
  if (got.shape() != want.shape())
    return "shapes differ";
  for (i64 i = 0; i < want.num_elements(); ++i) {
    const double a = got.at(i), b = want.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= atol + rtol * std::abs(b))
      continue;
    return "element " + std::to_string(i) + " is " + std::to_string(a) + ", PyTorch has " +
           std::to_string(b);
  }
  return {};
}

std::string first_error(const Diagnostics &diagnostics) {
  return diagnostics.all().empty() ? "no message" : to_text(diagnostics.all().front());
}

/// Why the case fails; empty when it passes.
std::string check(const fs::path &folder) {
  ir::Context ctx;
  Diagnostics diagnostics;
  auto graph = pt2::read(ctx, (folder / "model.pt2").string(), diagnostics);
  if (!graph)
    return to_text(graph.error());
  std::vector<std::string> passes = aten::core_pipeline();
  passes.insert(passes.end(), {"cse", "dce", "check-core"});
  pass::PipelineOptions options;
  options.verify_each = true;
  std::vector<pass::PassRecord> records;
  if (!pass::run_pipeline(**graph, passes, diagnostics, options, records))
    return first_error(diagnostics);
  auto arrays = eval::read_numpy((folder / "io.npz").string());
  if (!arrays)
    return to_text(arrays.error());
  const auto array = [&](const std::string &name) -> const eval::Tensor * {
    for (const auto &[key, tensor] : *arrays)
      if (key == name)
        return &tensor;
    return nullptr;
  };
  std::vector<eval::Tensor> inputs;
  for (size_t i = 0; i < (*graph)->inputs().size(); ++i) {
    if (!(*graph)->inputs()[i].value)
      continue; // a number that export specialised
    const eval::Tensor *t = array("in" + std::to_string(i));
    if (!t)
      return "input " + std::to_string(i) + " has no array";
    inputs.push_back(*t);
  }
  auto outputs = eval::evaluate(**graph, inputs);
  if (!outputs)
    return to_text(outputs.error());
  const std::string json = text_of(folder / "case.json");
  const double rtol = number_after(json, "rtol"), atol = number_after(json, "atol");
  int next = 0;
  for (size_t i = 0; i < outputs->size(); ++i) {
    if ((*graph)->outputs()[i].kind != ir::OutputKind::User)
      continue;
    const eval::Tensor *want = array("out" + std::to_string(next++));
    const std::string wrong =
        want ? difference((*outputs)[i], *want, rtol, atol) : "an output has no array";
    if (!wrong.empty())
      return "output " + std::to_string(next - 1) + ": " + wrong;
  }
  return {};
}

TEST(CoreAten, CorpusComputesWhatPyTorchDoes) {
  const fs::path corpus = shared() / "corpus/tico";
  if (!fs::is_directory(corpus))
    GTEST_SKIP() << "no shared corpus";
  aten::register_dialect();
  aten::register_aten_passes();
  pass::register_core_passes();
  std::vector<fs::path> cases;
  for (const auto &entry : fs::directory_iterator(corpus))
    cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  size_t passed = 0;
  for (const fs::path &folder : cases) {
    const std::string name = folder.filename().string();
    if (!name.starts_with("net.") && !name.starts_with("model.") && !name.starts_with("op."))
      continue;
    const std::string why = check(folder);
    passed += why.empty();
    EXPECT_EQ(why, "") << name;
  }
  EXPECT_GE(passed, 225u) << "cases are missing";
}

} // namespace
} // namespace chute::convert
