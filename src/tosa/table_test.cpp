// The operator table against the schema: codes, attribute tables, slots, enumerations.
#include "schema/tosa_1_1_generated.h"
#include "tosa/coverage.h"
#include "tosa/infer.h"
#include "tosa/ops.h"
#include "tosa/target.h"
#include "tosa/verify.h"

#include "ir/builder.h"
#include "ir/context.h"
#include "ir/text.h"

#include <flatbuffers/reflection_generated.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace chute::tosa {
namespace {

namespace ts = ::tosa;

std::string read_file(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Names of an operator's attribute table: "Conv2dAttribute" for CONV2D, whatever the case.
bool same_letters(std::string_view table, std::string_view id) {
  std::string want;
  for (char c : id)
    if (c != '_')
      want += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  std::string have;
  for (char c : table.substr(0, table.size() - std::string_view("Attribute").size()))
    have += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return want == have;
}

TEST(TosaTable, MatchesTheSchema) {
  register_dialect();
  const std::string bytes = read_file(std::string(CHUTE_SCHEMA_DIR) + "/tosa_1_1.bfbs");
  ASSERT_FALSE(bytes.empty());
  const reflection::Schema &schema = *reflection::GetSchema(bytes.data());
  size_t rows = 0;
  for (const ts::Op code : ts::EnumValuesOp()) {
    const auto opcode = from_wire(static_cast<u32>(code));
    if (!opcode)
      continue;
    ++rows;
    const WireDef &def = wire(*opcode);
    EXPECT_EQ(def.id, ts::EnumNameOp(code));
    EXPECT_EQ(def.code, static_cast<u32>(code));
    EXPECT_EQ(def.minor, static_cast<u32>(code) > kConstShapeCode ? 1 : 0) << def.id;
    const std::string name = ts::EnumNameAttribute(static_cast<ts::Attribute>(code));
    EXPECT_TRUE(same_letters(name, def.id)) << name << " " << def.id;
    const reflection::Object *table = schema.objects()->LookupByKey(("tosa." + name).c_str());
    ASSERT_NE(table, nullptr) << name;
    ASSERT_EQ(table->fields()->size(), def.fields.size()) << name;
    for (size_t i = 0; i < def.fields.size(); ++i) {
      const reflection::Field *f =
          table->fields()->LookupByKey(std::string(def.fields[i].name).c_str());
      ASSERT_NE(f, nullptr) << name << "." << def.fields[i].name;
      EXPECT_EQ(f->id(), i) << name << "." << def.fields[i].name;
    }
  }
  EXPECT_EQ(rows, kNumOps);
}

class TosaInfer : public ::testing::Test {
protected:
  TosaInfer() { register_dialect(); }
  std::unique_ptr<ir::Graph> parse(const std::string &text) {
    auto g = ir::parse(ctx, text);
    EXPECT_TRUE(g) << (g ? "" : to_text(g.error()));
    return g ? std::move(*g) : nullptr;
  }
  /// The type of the last operator's first result, or the error.
  std::string infer(std::string args, std::string body) {
    auto g = ir::parse(ctx, "graph @t(" + args + ") {\n" + body + "\n return }");
    if (!g)
      return g.error().message;
    return ir::print(ctx, (*g)->return_op()->previous()->result()->type());
  }
  ir::Context ctx;
};

TEST_F(TosaInfer, Elementwise) {
  EXPECT_EQ(infer("%x: f32[4,1], %y: f32[1,3]", "%0 = tosa.add(%x, %y)"), "f32[4,3]");
  EXPECT_EQ(infer("%x: f32[4], %y: f32[4]", "%0 = tosa.greater(%x, %y)"), "bool[4]");
  EXPECT_EQ(infer("%x: i8[4], %y: i8[4], %s: i8[1]", "%0 = tosa.mul(%x, %y, %s)"), "i32[4]");
  EXPECT_NE(infer("%x: f32[4], %y: f32[1,4]", "%0 = tosa.add(%x, %y)").find("ranks 1 and 2"),
            std::string::npos);
  EXPECT_NE(infer("%x: f32[4], %y: f32[3]", "%0 = tosa.add(%x, %y)").find("broadcast"),
            std::string::npos);
}

TEST_F(TosaInfer, Windows) {
  const std::string conv = "%0 = tosa.conv2d(%x, %w, %b, %z, %z) {pad = [0, 0, 0, 0], stride = "
                           "[2, 2], dilation = [1, 1], acc_type = f32}";
  const std::string args = "%w: f32[5,3,3,2], %b: f32[1], %z: f32[1]";
  EXPECT_EQ(infer("%x: f32[1,9,7,2], " + args, conv), "f32[1,4,3,5]");
  // Windows that do not divide the input are no TOSA.
  EXPECT_NE(infer("%x: f32[1,8,7,2], " + args, conv).find("do not divide"), std::string::npos);
  EXPECT_EQ(infer("%x: i16[2,3,4], %y: i16[2,4,5], %z: i16[1]", "%0 = tosa.matmul(%x, %y, %z, %z)"),
            "i48[2,3,5]");
}

TEST_F(TosaInfer, Movement) {
  EXPECT_EQ(infer("%x: f32[2,3,4]", "%0 = tosa.transpose(%x) {perms = [2, 0, 1]}"), "f32[4,2,3]");
  EXPECT_NE(infer("%x: f32[2,3]", "%0 = tosa.transpose(%x) {perms = [0, 0]}").find("permutation"),
            std::string::npos);
  const std::string s = "%s = core.constant dense<[3, -1]> : i64[2]\n";
  EXPECT_EQ(infer("%x: f32[2,6]", s + "%0 = tosa.reshape(%x, %s)"), "f32[3,4]");
  EXPECT_NE(infer("%x: f32[2,5]", s + "%0 = tosa.reshape(%x, %s)").find("divide"),
            std::string::npos);
  EXPECT_EQ(infer("%x: f32[2,6]", "%0 = tosa.reduce_sum(%x) {axis = 1}"), "f32[2,1]");
}

TEST_F(TosaInfer, TargetsNameTheClause) {
  auto check = [&](std::string args, std::string body, std::string target) {
    auto g = parse("graph @t(" + args + ") {\n" + body + "\n return }");
    const auto bad = check_operator(*g->return_op()->previous(), *parse_target(target));
    return bad ? bad->code + ": " + bad->clause : std::string();
  };
  EXPECT_EQ(check("%x: f32[4]", "%0 = tosa.tanh(%x)", "tosa-1.0+fp"), "");
  EXPECT_EQ(check("%x: f32[4]", "%0 = tosa.tanh(%x)", "tosa-1.0+int"),
            "tosa.profile: on f32 it needs FP");
  EXPECT_EQ(check("%x: bf16[4]", "%0 = tosa.tanh(%x)", "tosa-1.0+fp"),
            "tosa.profile: on bf16 it needs BF16");
  EXPECT_EQ(check("%x: i8[4]", "%0 = tosa.exp(%x)", "tosa-1.0"),
            "tosa.types: no profile or extension has it from i8 to i8");
  EXPECT_EQ(check("%x: f32[1,1,1,1,1,1,1]", "%0 = tosa.tanh(%x)", "tosa-1.0"),
            "tosa.level: MAX_RANK: rank 7 is above 6");
  EXPECT_EQ(check("%x: f32[1,1,1,1,1,1,1]", "%0 = tosa.tanh(%x)", "tosa-1.0+fp+nolevel"), "");
  EXPECT_EQ(check("%x: f32[4,4]", "%0 = tosa.dim(%x) {axis = 0}", "tosa-1.0"),
            "tosa.version: it came with TOSA 1.1");
  EXPECT_FALSE(parse_target("tosa-2.0"));
  EXPECT_FALSE(parse_target("tosa-1.0+nonsense"));
}

TEST_F(TosaInfer, CoverageNamesWhatFails) {
  auto g = parse("graph @t(%x: f32[2,3]) {\n"
                 "  %0 = tosa.tanh(%x) : f32[2,3] loc(\"tanh\" in \"act\")\n"
                 "  %1 = tosa.reduce_sum(%0) {axis = 1} : f32[2,1] loc(\"sum\")\n"
                 "  %2 = tosa.exp(%1) : f32[2,1] loc(\"sum\")\n return }");
  const auto rows = coverage(*g, *parse_target("tosa-1.0+int")).rows;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].node, "tanh");
  EXPECT_EQ(rows[0].module_path, "act");
  EXPECT_EQ(rows[1].emitted, (std::vector<std::string>{"REDUCE_SUM 2x1 f32", "EXP 2x1 f32"}));
  ASSERT_TRUE(rows[1].failed);
  EXPECT_EQ(rows[1].failed->clause, "on f32 it needs FP");
  EXPECT_FALSE(coverage(*g, *parse_target("tosa-1.0+fp")).rows[0].failed);
}

} // namespace
} // namespace chute::tosa
