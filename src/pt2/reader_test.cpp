#include "pt2/reader.h"

#include "aten/ops.h"
#include "ir/text.h"
#include "ir/verifier.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <sstream>

namespace chute::pt2 {
namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

fs::path data(const std::string &name) {
  return fs::path(CHUTE_SOURCE_DIR) / "test/data/pt2" / name;
}

Result<std::unique_ptr<ir::Graph>> read_text(ir::Context &ctx, const std::string &bytes,
                                             const ReadOptions &options = {},
                                             Summary *summary = nullptr) {
  aten::register_dialect();
  Diagnostics diagnostics;
  // The heap block has the exact size: a read behind it is a finding of the sanitizer.
  const std::shared_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  return read_bytes(ctx, {copy.get(), bytes.size()}, copy, "test.pt2", diagnostics, options,
                    summary);
}

/// The text form without locations, or the error.
std::string shown(const std::string &bytes, const ReadOptions &options = {}) {
  ir::Context ctx;
  const auto graph = read_text(ctx, bytes, options);
  if (!graph)
    return to_text(graph.error());
  ir::PrintOptions print;
  print.locations = false;
  return ir::print(**graph, print);
}

class Golden : public testing::TestWithParam<const char *> {};

// The expected text lies beside each archive. To renew it after a change: CHUTE_UPDATE_GOLDEN=1.
TEST_P(Golden, Reads) {
  const std::string name = GetParam();
  const std::string text = shown(slurp(data(name + ".pt2")));
  const fs::path golden = data(name + ".ir.txt");
  if (std::getenv("CHUTE_UPDATE_GOLDEN"))
    std::ofstream(golden, std::ios::binary) << text;
  EXPECT_EQ(text, slurp(golden));
}

TEST_P(Golden, SameInAnyPiecesAndThreads) {
  const std::string bytes = slurp(data(std::string(GetParam()) + ".pt2"));
  const std::string expected = shown(bytes);
  for (const unsigned threads : {1u, 2u, 5u})
    for (const size_t piece : {size_t{1}, size_t{700}, size_t{3000}}) {
      ReadOptions options;
      options.threads = threads;
      options.piece_bytes = piece;
      options.check_weights = true;
      EXPECT_EQ(shown(bytes, options), expected) << threads << " threads, pieces of " << piece;
    }
}

TEST_P(Golden, Verifies) {
  aten::register_dialect();
  ir::Context ctx;
  Diagnostics diagnostics;
  const auto graph = read(ctx, data(std::string(GetParam()) + ".pt2").string(), diagnostics);
  ASSERT_TRUE(graph.has_value()) << to_text(graph.error());
  ir::verify(**graph, diagnostics);
  for (const Diagnostic &d : diagnostics.all())
    ADD_FAILURE() << to_text(d);
}

INSTANTIATE_TEST_SUITE_P(Archives, Golden,
                         testing::Values("linear", "views", "dynamic", "mutation",
                                         "mutation_functional", "control", "control_functional",
                                         "lists", "autocast"),
                         [](const auto &info) { return std::string(info.param); });

TEST(Reader, OtherLayoutsHoldTheSameProgram) {
  const std::string expected = slurp(data("linear.ir.txt"));
  for (const char *name : {"layout_a.pt2", "layout_b.pt2", "deflated.pt2"})
    EXPECT_EQ(shown(slurp(data(name))), expected) << name;
}

TEST(Reader, Summary) {
  ir::Context ctx;
  Summary s;
  ASSERT_TRUE(read_text(ctx, slurp(data("linear.pt2")), {}, &s));
  EXPECT_EQ(s.torch_version.substr(0, 4), "2.13");
  EXPECT_EQ(s.schema_major, 8);
  EXPECT_EQ(s.schema_minor, 20);
  EXPECT_EQ(s.model, "model");
  EXPECT_EQ(s.generation, 'C');
  EXPECT_EQ(s.nodes, 6u);
  EXPECT_TRUE(s.is_training_dialect());
  ASSERT_TRUE(read_text(ctx, slurp(data("mutation_functional.pt2")), {}, &s));
  EXPECT_FALSE(s.is_training_dialect());
  ASSERT_TRUE(read_text(ctx, slurp(data("layout_a.pt2")), {}, &s));
  EXPECT_EQ(s.generation, 'A');
  ASSERT_TRUE(read_text(ctx, slurp(data("layout_b.pt2")), {}, &s));
  EXPECT_EQ(s.generation, 'B');
}

TEST(Reader, WeightsAreViews) {
  aten::register_dialect();
  ir::Context ctx;
  Diagnostics diagnostics;
  const auto graph = read(ctx, data("views.pt2").string(), diagnostics);
  ASSERT_TRUE(graph.has_value());
  std::map<std::string_view, const ir::Constant *> by_name;
  for (ir::Op &op : (*graph)->body())
    if (op.opcode() == ir::core_op::constant)
      by_name[ctx.string(op.result()->name())] = op.attr(0).as_constant();
  const ir::Constant *base = by_name.at("b_base");
  const ir::Constant *part = by_name.at("b_part");
  const ir::Constant *turned = by_name.at("b_turned");
  const ir::Constant *wide = by_name.at("b_wide");
  EXPECT_EQ(part->data, base->data + 6 * sizeof(float)); // one storage
  EXPECT_EQ(turned->data, base->data);
  EXPECT_EQ(std::vector<i64>(turned->strides.begin(), turned->strides.end()),
            (std::vector<i64>{1, 4}));
  EXPECT_EQ(std::vector<i64>(wide->strides.begin(), wide->strides.end()), (std::vector<i64>{1, 0}));
  EXPECT_TRUE(base->is_dense());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(base->data) % 64, 0u); // not copied
}

TEST(Reader, Provenance) {
  aten::register_dialect();
  ir::Context ctx;
  Diagnostics diagnostics;
  const auto graph = read(ctx, data("linear.pt2").string(), diagnostics);
  ASSERT_TRUE(graph.has_value());
  for (ir::Op &op : (*graph)->body())
    if (op.name() == "aten.linear.default") {
      const ir::Provenance p = (*graph)->locations().resolve(op.loc());
      EXPECT_EQ(p.nodes, std::vector<std::string>{"linear"});
      EXPECT_EQ(p.module_path, "fc");
      EXPECT_EQ(p.module_type, "torch.nn.modules.linear.Linear");
      EXPECT_EQ(p.source_line.substr(0, 10), "linear.py:");
    }
}

TEST(Reader, MissingFile) {
  aten::register_dialect();
  ir::Context ctx;
  Diagnostics diagnostics;
  const auto graph = read(ctx, data("no such file").string(), diagnostics);
  ASSERT_FALSE(graph.has_value());
  EXPECT_EQ(graph.error().code, "file.open");
  EXPECT_EQ(graph.error().kind, ErrorKind::BadInput);
  const auto folder = read(ctx, data("").string(), diagnostics);
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().code, "file.open");
}

TEST(Reader, UnknownModel) {
  ir::Context ctx;
  ReadOptions options;
  options.model = "other";
  const auto graph = read_text(ctx, slurp(data("linear.pt2")), options);
  ASSERT_FALSE(graph.has_value());
  EXPECT_EQ(graph.error().code, "pt2.archive.model");
  EXPECT_NE(graph.error().hint.find("model"), std::string::npos);
}

/// An error names a code and a place; a graph verifies.
void expect_sane(const std::string &bytes, const ReadOptions &options = {}) {
  ir::Context ctx;
  const auto graph = read_text(ctx, bytes, options);
  if (!graph) {
    EXPECT_NE(graph.error().code, "");
    EXPECT_NE(graph.error().object, "");
    EXPECT_NE(graph.error().message, "");
    return;
  }
  Diagnostics found;
  ir::verify(**graph, found);
  for (const Diagnostic &d : found.all())
    ADD_FAILURE() << to_text(d);
}

TEST(ReaderProperty, TruncatedArchivesAreErrors) {
  for (const char *name : {"control.pt2", "layout_a.pt2", "deflated.pt2"}) {
    const std::string bytes = slurp(data(name));
    for (size_t n = 0; n < bytes.size(); n += 37) {
      ir::Context ctx;
      const auto graph = read_text(ctx, bytes.substr(0, n));
      ASSERT_FALSE(graph.has_value());
      EXPECT_EQ(graph.error().kind, ErrorKind::BadInput);
      EXPECT_NE(graph.error().object, "");
    }
  }
}

TEST(ReaderProperty, FlippedBits) {
  std::mt19937 random(20);
  for (const char *name :
       {"linear.pt2", "views.pt2", "dynamic.pt2", "layout_b.pt2", "deflated.pt2"}) {
    const std::string bytes = slurp(data(name));
    for (int i = 0; i < 400; ++i) {
      std::string damaged = bytes;
      for (int k = 0; k <= i % 3; ++k)
        damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
      ReadOptions options;
      options.check_json = i % 2 == 0; // off: the damage reaches what parses the JSON
      options.check_weights = i % 4 == 1;
      expect_sane(damaged, options);
    }
  }
}

/// A layout A archive of these texts, whose JSON is parsed without any check of its own.
std::string flat_archive(const std::vector<std::pair<std::string, std::string>> &members);

// Damage inside the JSON, with the checksum right: what the CRC would catch otherwise.
TEST(ReaderProperty, DamagedJson) {
  const std::string bytes = slurp(data("layout_a.pt2"));
  // Stored members: the program's text lies there as it is.
  const size_t begin = bytes.find("{\"graph_module\"");
  const size_t end = bytes.find("PK", begin);
  ASSERT_NE(begin, std::string::npos);
  const std::string program = bytes.substr(begin, end - begin);
  std::mt19937 random(21);
  const std::string_view alphabet = "{}[]\",:\\0123456789-naet ";
  for (int i = 0; i < 1500; ++i) {
    std::string damaged = program;
    for (int k = 0; k <= i % 3; ++k) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
      case 0: damaged[at] = alphabet[random() % alphabet.size()]; break;
      case 1: damaged.erase(at, random() % 40); break;
      case 2: damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 60)); break;
      default: damaged.resize(at + 1); break;
      }
    }
    expect_sane(flat_archive({{"serialized_exported_program.json", damaged}}));
  }
}

void put(std::string &out, u64 value, int bytes) {
  for (; bytes > 0; --bytes, value >>= 8)
    out += static_cast<char>(value);
}

u32 crc(const std::string &text) {
  u32 c = ~0u;
  for (const char byte : text) {
    c ^= static_cast<u8>(byte);
    for (int i = 0; i < 8; ++i)
      c = (c >> 1) ^ (c & 1 ? 0xEDB88320u : 0);
  }
  return ~c;
}

std::string flat_archive(const std::vector<std::pair<std::string, std::string>> &members) {
  std::string out, directory;
  for (const auto &[name, text] : members) {
    const u64 at = out.size();
    std::string common;
    put(common, 0, 2 + 2 + 2 + 2); // flags, method, time, date
    put(common, crc(text), 4);
    put(common, text.size(), 4);
    put(common, text.size(), 4);
    put(common, name.size(), 2);
    put(common, 0, 2); // extra
    out += "PK\3\4";
    put(out, 20, 2);
    out += common + name + text;
    directory += "PK\1\2";
    put(directory, 20, 2);
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 2 + 2 + 2 + 4); // comment, volume, attributes
    put(directory, at, 4);
    directory += name;
  }
  const u64 at = out.size();
  out += directory + "PK\5\6";
  put(out, 0, 4);
  put(out, members.size(), 2);
  put(out, members.size(), 2);
  put(out, directory.size(), 4);
  put(out, at, 4);
  put(out, 0, 2);
  return out;
}

/// A program of layout A with these nodes over one input x: f32[2]; every value named in `values`
/// is f32[2].
std::string program(const std::string &nodes, const std::vector<std::string> &values,
                    const std::string &output) {
  const std::string meta =
      R"({"dtype": 7, "sizes": [{"as_int": 2}], "requires_grad": false, "device": {"type": "cpu"},)"
      R"( "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7})";
  std::string table = "\"x\": " + meta;
  for (const std::string &v : values)
    table += ", \"" + v + "\": " + meta;
  return flat_archive(
      {{"serialized_exported_program.json",
        R"({"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "x"}}], "outputs": )"
        R"([{"as_tensor": {"name": ")" +
            output + R"("}}], "nodes": [)" + nodes + R"(], "tensor_values": {)" + table +
            R"(}}, "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],)"
            R"( "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": ")" +
            output + R"("}}}}]}}, "schema_version": {"major": 8, "minor": 7}})"}});
}

constexpr const char *kRelu =
    R"({"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}}],)"
    R"( "outputs": [{"as_tensor": {"name": "y"}}]})";

TEST(Reader, HandWrittenProgram) {
  EXPECT_EQ(shown(program(kRelu, {"y"}, "y")), "graph @main(%x: f32[2]) -> (\"y\": f32[2]) {\n"
                                               "  %y = aten.relu.default(%x) : f32[2]\n"
                                               "  return %y\n"
                                               "}\n");
}

TEST(Reader, UnregisteredOperatorsKeepEverything) {
  const std::string text = shown(program(
      R"({"target": "torch.ops.my.op.default", "inputs": [{"name": "a", "arg": {"as_tensors": [{"name": "x"},)"
      R"( {"name": "x"}]}}, {"name": "b", "arg": {"as_ints": [1, 2]}}, {"name": "c", "arg": {"as_string": "\u00e9"}},)"
      R"( {"name": "d", "arg": {"as_int_lists": [[1], [2, 3]]}}, {"name": "e", "arg": {"as_complex": {"real": 1.0,)"
      R"( "imag": "NaN"}}}], "outputs": [{"as_tensor": {"name": "y"}}, {"as_none": true}]})",
      {"y"}, "y"));
  EXPECT_NE(text.find("my.op.default"), std::string::npos) << text;
  EXPECT_NE(text.find("[1, 2]"), std::string::npos) << text;
  EXPECT_NE(text.find("none"), std::string::npos) << text;
}

struct Refused {
  const char *what;
  std::string nodes;
  const char *code;
};

TEST(Reader, RefusesBadNodes) {
  const std::string out = R"("outputs": [{"as_tensor": {"name": "y"}}]})";
  const auto relu = [&](const std::string &inputs) {
    return R"({"target": "torch.ops.aten.relu.default", "inputs": [)" + inputs + "], " + out;
  };
  const std::string self = R"({"name": "self", "arg": {"as_tensor": {"name": "x"}}})";
  const Refused cases[] = {
      {"no argument", relu(""), "pt2.node.argument"},
      {"given twice", relu(self + ", " + self), "pt2.node.argument"},
      {"unknown argument", relu(self + R"(, {"name": "zzz", "arg": {"as_int": 1}})"),
       "pt2.node.argument"},
      {"undefined value", relu(R"({"name": "self", "arg": {"as_tensor": {"name": "q"}}})"),
       "pt2.value.undefined"},
      {"used before", relu(R"({"name": "self", "arg": {"as_tensor": {"name": "y"}}})"),
       "pt2.value.undefined"},
      {"wrong kind", relu(R"({"name": "self", "arg": {"as_string": "x"}})"), "pt2.node.argument"},
      {"defined twice", std::string(kRelu) + ", " + kRelu, "pt2.value.redefined"},
      {"input redefined",
       R"({"target": "torch.ops.aten.relu.default", "inputs": [)" + self +
           R"(], "outputs": [{"as_tensor": {"name": "x"}}]})",
       "pt2.value.redefined"},
      {"no type",
       R"({"target": "torch.ops.aten.relu.default", "inputs": [)" + self +
           R"(], "outputs": [{"as_tensor": {"name": "w"}}]})",
       "pt2.value.no_type"},
      {"two results",
       R"({"target": "torch.ops.aten.relu.default", "inputs": [)" + self +
           R"(], "outputs": [{"as_tensor": {"name": "y"}}, {"as_none": true}]})",
       "pt2.node.results"},
      {"no target", R"({"inputs": [], "outputs": []})", "pt2.json.malformed"},
      {"a number", "7", "pt2.json.malformed"},
      {"missing element", std::string(kRelu) + ", ", "pt2.json.malformed"},
      {"unknown form",
       R"({"target": "torch.ops.my.op", "inputs": [{"name": "a", "arg": {"as_future": 1}}], )" +
           out,
       "pt2.node.argument"},
  };
  for (const Refused &c : cases) {
    ir::Context ctx;
    const auto graph = read_text(ctx, program(c.nodes, {"y"}, "y"));
    ASSERT_FALSE(graph.has_value()) << c.what;
    EXPECT_EQ(graph.error().code, c.code) << c.what << ": " << to_text(graph.error());
    EXPECT_NE(graph.error().object.find("serialized_exported_program.json@"), std::string::npos)
        << c.what << ": " << graph.error().object;
  }
}

TEST(Reader, DeepNestingIsAnError) {
  std::string nodes = kRelu;
  for (int i = 0; i < 60; ++i)
    nodes =
        R"({"target": "torch.ops.higher_order.wrap_with_set_grad_enabled", "inputs": [{"name": "", "arg": )"
        R"({"as_bool": false}}, {"name": "", "arg": {"as_graph": {"name": "g", "graph": {"inputs": [], "outputs": [],)"
        R"( "nodes": [)" +
        nodes + R"(], "tensor_values": {}}}}}], "outputs": []})";
  ir::Context ctx;
  const auto graph = read_text(ctx, program(nodes, {"y"}, "x"));
  ASSERT_FALSE(graph.has_value());
  EXPECT_EQ(graph.error().code, "pt2.graph.nesting");
}

TEST(Reader, ALongChainIsNotRecursion) {
  constexpr int kNodes = 50000;
  std::string nodes;
  std::vector<std::string> values;
  for (int i = 0; i < kNodes; ++i) {
    const std::string from = i ? "v" + std::to_string(i - 1) : "x", to = "v" + std::to_string(i);
    if (i)
      nodes += ", ";
    nodes +=
        R"({"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": ")" +
        from + R"("}}}], "outputs": [{"as_tensor": {"name": ")" + to + R"("}}]})";
    values.push_back(to);
  }
  ir::Context ctx;
  ReadOptions options;
  options.threads = 3;
  options.piece_bytes = 10000;
  const auto graph = read_text(ctx, program(nodes, values, values.back()), options);
  ASSERT_TRUE(graph.has_value()) << to_text(graph.error());
  EXPECT_EQ((*graph)->num_ops(), kNodes + 1u);
}

} // namespace
} // namespace chute::pt2
