// Type inference of the ATen table against the types that torch.export recorded, over every archive
// of the shared corpus. Skipped without it.

#include "aten/ops.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "pt2/reader.h"

#include <algorithm>
#include <array>
#include <cstdio>
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

/// Archives in which the record is not what the operators say by themselves.
constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kKnown{{
    {"symin", "a slice up to s86 of s77: export assumed s86 <= s77, inference takes the smaller"},
}};

bool is_known(const fs::path &file) {
  return std::ranges::any_of(kKnown, [&](const auto &k) { return k.first == file.stem(); });
}

struct Findings {
  size_t compared = 0;
  std::map<std::string, std::vector<std::string>> wrong; // by operator
};

std::string print(const ir::Context &ctx, std::span<const ir::Type> types) {
  std::string s;
  for (ir::Type t : types)
    s += (s.empty() ? "" : ", ") + (t ? ir::print(ctx, t) : std::string("?"));
  return s;
}

void compare(const fs::path &file, ir::Graph &graph, const ir::Op &op, Findings &findings) {
  if (!op.def().infer || op.has(ir::trait::kRegions) || op.opcode() == ir::core_op::ret)
    return;
  std::vector<ir::Type> recorded, inferred;
  for (const ir::Value &v : op.results())
    recorded.push_back(v.type());
  const Status status = op.def().infer(op, graph, inferred);
  // An unbacked symbol in the record stands for what no inference can know.
  if (!status && status.error().code == "aten.infer.data_dependent")
    return;
  ++findings.compared;
  bool equal = status && inferred.size() == recorded.size();
  for (size_t i = 0; equal && i < recorded.size(); ++i)
    equal = recorded[i].kind() == ir::TypeKind::None || recorded[i] == inferred[i];
  if (equal)
    return;
  findings.wrong[std::string(op.name())].push_back(
      file.parent_path().filename().string() + "/" + file.stem().string() + ": recorded " +
      print(graph.context(), recorded) + "; " +
      (status ? "inferred " + print(graph.context(), inferred) : to_text(status.error())) +
      "\n    " + ir::print(graph, op));
}

TEST(Corpus, InferenceAgreesWithRecordedTypes) {
  std::vector<fs::path> files;
  if (fs::is_directory(shared() / "corpus"))
    for (const auto &e : fs::recursive_directory_iterator(shared() / "corpus"))
      if (e.path().extension() == ".pt2")
        files.push_back(e.path());
  if (files.empty())
    GTEST_SKIP() << "no shared corpus";
  std::sort(files.begin(), files.end());
  aten::register_dialect();
  Findings findings;
  for (const fs::path &file : files) {
    ir::Context ctx;
    Diagnostics diagnostics;
    const auto graph = read(ctx, file.string(), diagnostics);
    if (!graph || is_known(file))
      continue; // refused ones are the business of corpus_test.cpp
    ir::walk((*graph)->body(), [&](ir::Op &op) { compare(file, **graph, op, findings); });
  }
  EXPECT_GT(findings.compared, 5000u);
  std::printf("%zu operators compared\n", findings.compared);
  for (const auto &[name, list] : findings.wrong) {
    std::string some;
    for (size_t i = 0; i < std::min<size_t>(list.size(), 3); ++i)
      some += "\n  " + list[i];
    ADD_FAILURE() << name << ": " << list.size() << " differ" << some;
  }
}

} // namespace
} // namespace chute::pt2
