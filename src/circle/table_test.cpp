// The operator table against the schema itself (reflection of schema/circle.fbs).
#include "circle/element.h"
#include "circle/ops.h"
#include "ir/context.h"

#include <flatbuffers/reflection.h>
#include <flatbuffers/reflection_generated.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <set>

namespace chute::circle {
namespace {

class TableTest : public ::testing::Test {
protected:
  TableTest() {
    register_dialect();
    std::ifstream in(CHUTE_SCHEMA_DIR "/circle.bfbs", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
    schema = reflection::GetSchema(bytes.data());
  }
  const reflection::Enum *find_enum(const char *name) const {
    return schema->enums()->LookupByKey((std::string("circle.") + name).c_str());
  }
  const reflection::Object *table(std::string_view name) const {
    return schema->objects()->LookupByKey(("circle." + std::string(name)).c_str());
  }
  std::string bytes;
  const reflection::Schema *schema = nullptr;
};

TEST_F(TableTest, EveryBuiltinOperatorHasOneRow) {
  std::set<i64> wire_codes;
  for (const auto *value : *find_enum("BuiltinOperator")->values()) {
    const auto code = from_wire(static_cast<i32>(value->value()));
    ASSERT_TRUE(code) << value->name()->str();
    EXPECT_EQ(wire(*code).code, value->value());
    std::string name = "circle.";
    for (char c : value->name()->str())
      name += static_cast<char>(std::tolower(c));
    EXPECT_EQ(ir::Registry::global().def(*code).name, name);
    EXPECT_EQ(ir::Registry::global().find(name)->opcode, *code);
    wire_codes.insert(value->value());
  }
  EXPECT_EQ(wire_codes.size(), kNumOps);
  EXPECT_EQ(kNumOps, 218u);
  EXPECT_FALSE(from_wire(210));
  EXPECT_FALSE(from_wire(-10));
  EXPECT_FALSE(from_wire(std::numeric_limits<i32>::min()));
}

/// What a field's type is in the schema.
FieldType wire_field(const reflection::Schema &schema, const reflection::Field &f) {
  const auto *t = f.type();
  if (t->base_type() == reflection::String)
    return FieldType::String;
  if (t->base_type() == reflection::Vector)
    switch (t->element()) {
    case reflection::Int: return FieldType::Ints;
    case reflection::UInt: return FieldType::UInts;
    case reflection::Long: return FieldType::Longs;
    case reflection::Float: return FieldType::Floats;
    case reflection::Bool: return FieldType::Bools;
    default: return FieldType::Bytes;
    }
  if (t->index() >= 0)
    return schema.enums()->Get(static_cast<u32>(t->index()))->name()->str() == "circle.TensorType"
               ? FieldType::TensorType
               : FieldType::Enum;
  switch (t->base_type()) {
  case reflection::Bool: return FieldType::Bool;
  case reflection::Float: return FieldType::Float;
  case reflection::Long: return FieldType::Long;
  case reflection::UInt: return FieldType::UInt;
  default: return FieldType::Int;
  }
}

TEST_F(TableTest, OptionsTablesAreTheSchemas) {
  size_t members = 0;
  for (const OptionsDef &def : all_options()) {
    const auto *u = find_enum(def.union_number == 1 ? "BuiltinOptions" : "BuiltinOptions2");
    const auto *member = u->values()->LookupByKey(def.member);
    ASSERT_TRUE(member) << def.name;
    EXPECT_EQ(member->name()->str(), def.name);
    const auto *object = table(def.name);
    ASSERT_TRUE(object) << def.name;
    size_t current = 0;
    for (const auto *f : *object->fields()) {
      if (f->deprecated())
        continue;
      ++current;
      const Field *mine = nullptr;
      for (const Field &candidate : def.fields)
        if (candidate.slot == f->id())
          mine = &candidate;
      const std::string where = std::string(def.name) + "." + f->name()->str();
      ASSERT_TRUE(mine) << where;
      FieldType type = mine->type;
      // References between subgraphs are plain integers in the schema.
      if (type == FieldType::Subgraph)
        type = f->type()->base_type() == reflection::UInt ? FieldType::UInt : FieldType::Int;
      else if (type == FieldType::Subgraphs)
        type = FieldType::Ints;
      else
        EXPECT_EQ(mine->name, f->name()->str());
      EXPECT_EQ(type, wire_field(*schema, *f)) << where;
      EXPECT_EQ(mine->wire_default, f->default_integer()) << where;
      EXPECT_EQ(f->default_real(), 0.0) << where;
      if (type == FieldType::Enum) {
        const auto *e = schema->enums()->Get(static_cast<u32>(f->type()->index()));
        EXPECT_EQ("circle." + std::string(mine->enumeration->name), e->name()->str());
        EXPECT_EQ(mine->enumeration->values.size(), e->values()->size());
        EXPECT_EQ(mine->enumeration->bytes, f->type()->base_type() == reflection::Byte ? 1 : 4)
            << where;
      }
    }
    EXPECT_EQ(current, def.fields.size()) << def.name;
    ++members;
  }
  EXPECT_EQ(members + 2, find_enum("BuiltinOptions")->values()->size() +
                             find_enum("BuiltinOptions2")->values()->size());
}

TEST_F(TableTest, EveryOptionsTableHasAnOperator) {
  std::set<std::string_view> used;
  for (size_t i = 0; i < kNumOps; ++i)
    if (const OptionsDef *o = wire(ir::OpCode{static_cast<u16>(ir::kCircleBase + i)}).options)
      used.insert(o->name);
  EXPECT_EQ(used.size(), all_options().size());
}

TEST_F(TableTest, ElementTypesMapBothWays) {
  for (const auto *value : *find_enum("TensorType")->values()) {
    const auto element = from_wire_type(static_cast<i8>(value->value()));
    ASSERT_TRUE(element) << value->name()->str();
    EXPECT_EQ(to_wire_type(*element), static_cast<i8>(value->value()));
  }
  EXPECT_FALSE(from_wire_type(19));
  EXPECT_FALSE(to_wire_type(ir::ElementType::F8E4M3FN));
  EXPECT_EQ(wire_bytes(ir::ElementType::I4, 5), 3u);
  EXPECT_EQ(wire_bytes(ir::ElementType::F64, 5), 40u);
  EXPECT_FALSE(wire_bytes(ir::ElementType::String, 1));
  EXPECT_FALSE(wire_bytes(ir::ElementType::I64, std::numeric_limits<i64>::max()));
}

TEST_F(TableTest, DefaultsAndRequiredFields) {
  const ir::OpDef &conv = ir::Registry::global().def(op::CONV_2D);
  EXPECT_EQ(conv.operands[2].name, "bias");
  EXPECT_EQ(conv.operands[2].arity, ir::OperandArity::Optional);
  EXPECT_FALSE(conv.attrs[static_cast<size_t>(conv.attr_index("padding"))].has_default);
  const auto &dilation = conv.attrs[static_cast<size_t>(conv.attr_index("dilation_h_factor"))];
  EXPECT_EQ(dilation.default_value.as_int().value(), 1);
  const auto &act = conv.attrs[static_cast<size_t>(conv.attr_index("fused_activation_function"))];
  EXPECT_EQ(act.default_value.as_string(), "NONE");
  EXPECT_EQ(conv.attrs.back().name, "version");
  EXPECT_EQ(wire(op::WHILE).num_regions, 2);
  EXPECT_TRUE(wire(op::STABLEHLO_CASE).any_regions);
  EXPECT_EQ(wire(op::FULLY_CONNECTED).always_written, 3);
  EXPECT_EQ(wire(op::RESHAPE).always_written, 1);
}

/// A default that was filled in and one that was stated are one attribute.
TEST_F(TableTest, DefaultsCompareEqualAcrossContexts) {
  ir::Context ctx;
  const ir::OpDef &add = ir::Registry::global().def(op::ADD);
  EXPECT_EQ(add.attrs[0].default_value, ctx.string_attr("NONE"));
}

} // namespace
} // namespace chute::circle
