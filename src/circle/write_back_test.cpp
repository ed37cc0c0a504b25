// A file by somebody else that says everything the format can say (test/fuzz/verify_fuzz/
// every_feature.circle, made by test/e2e/circle_features.py): what no pass touches is written back.
#include "circle/ops.h"
#include "circle/origin.h"
#include "circle/reader.h"
#include "circle/verify.h"
#include "circle/writer.h"
#include "ir/builder.h"
#include "ir/verifier.h"
#include "schema/circle_generated.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace chute::circle {
namespace {

namespace cs = ::circle;
using Bytes = std::vector<std::byte>;

class WriteBackTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::ifstream in(CHUTE_SOURCE_DIR "/test/fuzz/verify_fuzz/every_feature.circle",
                     std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    ASSERT_FALSE(text.empty());
    const auto bytes = std::as_bytes(std::span(text));
    file.assign(bytes.begin(), bytes.end());
  }
  Model model() {
    auto m = read_model(ctx, file, {});
    EXPECT_TRUE(m) << to_text(m.error());
    return std::move(*m);
  }
  const cs::Model &write(const Model &m, bool compact = false) {
    ModelWriteOptions options;
    options.compact = compact;
    auto out = write_model_bytes(m, options);
    EXPECT_TRUE(out) << to_text(out.error());
    written = std::move(*out);
    Diagnostics d;
    verify(written, d);
    for (const Diagnostic &one : d.all())
      EXPECT_NE(one.severity, Severity::Error) << to_text(one);
    return *cs::GetModel(written.data());
  }
  const cs::Tensor &tensor(const cs::Model &m, std::string_view name) {
    for (const cs::Tensor *t : *m.subgraphs()->Get(0)->tensors())
      if (t->name() && t->name()->string_view() == name)
        return *t;
    ADD_FAILURE() << "no tensor " << name;
    return *m.subgraphs()->Get(0)->tensors()->Get(0);
  }

  ir::Context ctx;
  Bytes file, written;
};

TEST_F(WriteBackTest, Everything) {
  const Model m = model();
  EXPECT_EQ(m.more.size(), 2u) << "lone and loop";
  ASSERT_EQ(m.signatures.size(), 3u);
  EXPECT_EQ(m.signature_key, "main");
  EXPECT_EQ(m.graph->inputs()[0].name, "first");
  EXPECT_EQ(m.graph->inputs()[1].name, "second");
  const cs::Model &out = write(m);
  const cs::Model &in = *cs::GetModel(file.data());
  ASSERT_EQ(out.subgraphs()->size(), in.subgraphs()->size());
  ASSERT_EQ(out.buffers()->size(), in.buffers()->size());
  for (u32 s = 0; s < in.subgraphs()->size(); ++s) {
    const cs::SubGraph &a = *in.subgraphs()->Get(s), &b = *out.subgraphs()->Get(s);
    EXPECT_EQ(a.name()->str(), b.name()->str());
    ASSERT_EQ(a.tensors()->size(), b.tensors()->size()) << s;
    for (u32 t = 0; t < a.tensors()->size(); ++t) {
      EXPECT_EQ(a.tensors()->Get(t)->name()->str(), b.tensors()->Get(t)->name()->str());
      EXPECT_EQ(a.tensors()->Get(t)->buffer(), b.tensors()->Get(t)->buffer());
      EXPECT_EQ(a.tensors()->Get(t)->has_rank(), b.tensors()->Get(t)->has_rank());
      EXPECT_EQ(a.tensors()->Get(t)->compression_type(), b.tensors()->Get(t)->compression_type());
    }
  }
  EXPECT_TRUE(tensor(out, "sparse").sparsity()->dim_metadata()->Get(1)->array_segments());
  EXPECT_EQ(tensor(out, "y").quantization()->max()->Get(0), 6.0f);
  EXPECT_EQ(tensor(out, "y").shape()->Get(0), 4) << "though it is dynamic";
  EXPECT_TRUE(tensor(out, "z").quantization()) << "an empty table is not an absent one";
  EXPECT_EQ(tensor(out, "w4").quantization()->details_as_BlockwiseQuantization()->scales(), 9);
  EXPECT_EQ(tensor(out, "out_custom").variant_tensors()->Get(0)->type(), cs::TensorType_INT32);
  const cs::Operator &first = *out.subgraphs()->Get(0)->operators()->Get(0);
  EXPECT_EQ(first.custom_options()->size(), 3u);
  EXPECT_EQ(first.debug_metadata_index(), 4);
  EXPECT_EQ(first.intermediates()->size(), 2u);
  EXPECT_EQ(out.metadata()->Get(1)->buffer(), out.metadata()->Get(0)->buffer());
  EXPECT_EQ(out.metadata_buffer()->Get(0), in.metadata_buffer()->Get(0));
  EXPECT_EQ(out.signature_defs()->Get(2)->outputs()->Get(1)->name()->str(), "q");
  EXPECT_EQ(out.version(), 3u);
  // From now on nothing changes any more.
  ir::Context other;
  const auto again = read_model(other, written, {});
  ASSERT_TRUE(again);
  EXPECT_TRUE(*write_model_bytes(*again) == written);
}

TEST_F(WriteBackTest, WhatAPassChangesIsNew) {
  Model m = model();
  ir::Graph &g = *m.graph;
  Diagnostics d;
  ir::verify(g, d);
  EXPECT_FALSE(d.has_errors()) << to_text(d.all().front());
  // y = fully_connected(...) goes through a new operator, and its range is no longer y's.
  ir::Op *ret = g.return_op();
  ir::Value *y = ret->operand(0);
  ir::Builder b(g, g.body());
  b.set_insertion(g.body(), ret);
  ir::Value *clipped = b.create(op::RELU6, {y});
  g.set_operand(ret, 0, clipped);
  const u64 before = cs::GetModel(file.data())->subgraphs()->Get(0)->tensors()->size();
  const cs::Model &out = write(m);
  const cs::SubGraph &sub = *out.subgraphs()->Get(0);
  EXPECT_EQ(sub.tensors()->size(), before + 1);
  EXPECT_EQ(sub.outputs()->Get(0), static_cast<i32>(before)) << "new tensors come last";
  EXPECT_EQ(tensor(out, "y").quantization()->max()->Get(0), 6.0f);
  // The signature's port is the same, its tensor another one.
  EXPECT_EQ(out.signature_defs()->Get(1)->outputs()->Get(0)->tensor_index(), before);
  EXPECT_EQ(out.operator_codes()->size(), 11u);
}

TEST_F(WriteBackTest, Compact) {
  const cs::Model &out = write(model(), true);
  EXPECT_EQ(out.operator_codes()->size(), 8u);
  EXPECT_TRUE(tensor(out, "sparse").sparsity());
  EXPECT_TRUE(tensor(out, "w4").quantization()->details_as_BlockwiseQuantization());
  Diagnostics d;
  verify(written, d);
  for (const Diagnostic &one : d.all())
    EXPECT_TRUE(one.code.find("unused") == std::string::npos) << to_text(one);
}

TEST_F(WriteBackTest, CarriedConstantsHaveNoData) {
  const Model m = model();
  size_t carried = 0;
  for (const ir::Op &o : m.graph->body())
    if (o.opcode() == ir::core_op::constant && !o.attr(0u).as_constant()->has_data)
      ++carried;
  EXPECT_EQ(carried, 3u) << "sparse, strings, block-wise";
}

} // namespace
} // namespace chute::circle
