// write∘read is the identity: of random graphs, of every feature of the format, of files with their
// payload outside of the flatbuffer.
#include "circle/ops.h"
#include "circle/reader.h"
#include "circle/verify.h"
#include "circle/writer.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "schema/circle_generated.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>

namespace chute::circle {
namespace {

using ir::Attr;
using ir::ElementType;
using ir::SymInt;
using ir::Value;
using Bytes = std::vector<std::byte>;

std::string problems(const Bytes &bytes, const VerifyOptions &options = {}) {
  Diagnostics d;
  verify(bytes, d, options);
  std::string text;
  for (const Diagnostic &one : d.all())
    if (one.code != "circle.io.duplicate") // a program may return a value twice
      text += to_text(one) + "\n";
  return text;
}

class RoundTripTest : public ::testing::Test {
protected:
  RoundTripTest() { register_dialect(); }

  std::unique_ptr<ir::Graph> parse(std::string_view text) {
    auto g = ir::parse(ctx, text);
    if (!g) {
      ADD_FAILURE() << to_text(g.error());
      return std::make_unique<ir::Graph>(ctx);
    }
    return std::move(*g);
  }
  Bytes bytes_of(const ir::Graph &g, const WriteOptions &options = {}) {
    auto b = write_bytes(g, options, &stats);
    if (!b) {
      ADD_FAILURE() << to_text(b.error());
      return {};
    }
    return std::move(*b);
  }
  /// The graph in a file, which stays in memory as long as the test.
  std::unique_ptr<ir::Graph> graph_of(const Bytes &bytes) {
    auto kept = std::make_shared<Bytes>(bytes);
    auto g = read(ctx, *kept, kept);
    if (!g) {
      ADD_FAILURE() << to_text(g.error());
      return std::make_unique<ir::Graph>(ctx);
    }
    return std::move(*g);
  }
  /// Read as a whole model and written from it.
  Bytes rewritten(const Bytes &bytes, const ModelWriteOptions &options) {
    auto model = read_model(ctx, bytes, {});
    if (!model) {
      ADD_FAILURE() << to_text(model.error());
      return {};
    }
    auto out = write_model_bytes(*model, options);
    if (!out) {
      ADD_FAILURE() << to_text(out.error());
      return {};
    }
    return std::move(*out);
  }
  std::string print(const ir::Graph &g) {
    ir::PrintOptions options;
    options.locations = false;
    return ir::print(g, options);
  }
  /// Everything that a file must keep, and that it verifies. Returns what was read.
  std::unique_ptr<ir::Graph> check(const ir::Graph &g, bool same_text) {
    const Bytes first = bytes_of(g);
    EXPECT_EQ(problems(first), "");
    auto again = graph_of(first);
    Diagnostics d;
    ir::verify(*again, d);
    for (const Diagnostic &one : d.all())
      ADD_FAILURE() << to_text(one);
    if (same_text) {
      EXPECT_EQ(print(*again), print(g));
    }
    EXPECT_EQ(bytes_of(*again), first);
    EXPECT_EQ(print(*graph_of(bytes_of(*again))), print(*again));
    EXPECT_TRUE(rewritten(first, {}) == first) << "written back as it was";
    ModelWriteOptions compact;
    compact.compact = true;
    EXPECT_TRUE(rewritten(first, compact) == first) << "there is nothing to compact";
    // The same model with its payload behind the flatbuffer.
    WriteOptions outside;
    outside.inline_limit = 0;
    const Bytes external = bytes_of(g, outside);
    EXPECT_TRUE(stats.external);
    EXPECT_EQ(problems(external), "");
    EXPECT_EQ(print(*graph_of(external)), print(*again));
    ModelWriteOptions also_outside;
    also_outside.inline_limit = 0;
    EXPECT_TRUE(rewritten(external, also_outside) == external);
    return again;
  }
  /// The same text without looking at what the writer shares.
  void same(std::string_view text) {
    const auto g = parse(text);
    check(*g, true);
  }

  ir::Context ctx;
  WriteStats stats;
};

TEST_F(RoundTripTest, Options) {
  same(R"(graph @main(%x: f32[1,8,8,3]) -> ("y": f32[1,4,4,2], "z": f32[1,1]) {
    %w = core.constant rand(1, -1, 1) : f32[2,3,3,3]
    %y = circle.conv_2d(%x, %w, none) {padding = "SAME", stride_w = 2, stride_h = 2,
      fused_activation_function = "RELU6", quantized_bias_type = i32, version = 3} : f32[1,4,4,2]
    %s = core.constant dense<[1, -1]> : i32[2]
    %f = circle.reshape(%y, %s) {new_shape = [1, -1]} : f32[1,32]
    %fw = core.constant rand(2, -1, 1) : f32[1,32]
    %b = core.constant dense<[0.5]> : f32[1]
    %z = circle.fully_connected(%f, %fw, %b) {keep_num_dims = true} : f32[1,1]
    return %y, %z })");
}

TEST_F(RoundTripTest, QuantizedAndPacked) {
  same(R"(graph @main(%x: u8[2,4] quant([0.5:128])) -> ("y": u8[2,2] quant([0.25:3])) {
    %w = core.constant dense<[[-8, 7, 0, 1], [2, -3, 4, -5]]> : i4[2,4] quant(axis=0, [0.5:0, 0.25:0])
    %b = core.constant dense<[1, 2]> : i32[2] quant(axis=0, [0.25:0, 0.125:0])
    %y = circle.fully_connected(%x, %w, %b) : u8[2,2] quant([0.25:3])
    return %y })");
  same(R"(graph @main(%x: f32[3]) -> ("y": u4[3]) {
    %w = core.constant dense<[1, 15, 8]> : u4[3]
    return %w })");
}

TEST_F(RoundTripTest, InterfaceNames) {
  const auto g = parse(R"(graph @main(%x: f32[2] {name = "image"}, %y: f32[2] {name = "other"})
      -> ("logits": f32[2], "copy": f32[2], "again": f32[2]) {
    %0 = circle.add(%x, %y) : f32[2]
    return %0, %x, %0 })");
  const auto again = check(*g, false);
  ASSERT_EQ(again->inputs().size(), 2u);
  EXPECT_EQ(again->inputs()[1].name, "other");
  EXPECT_EQ(ctx.string(again->inputs()[1].value->name()), "other");
  ASSERT_EQ(again->outputs().size(), 3u);
  EXPECT_EQ(again->outputs()[0].name, "logits");
}

TEST_F(RoundTripTest, CustomOperators) {
  same(R"(graph @main(%x: f32[2]) -> ("y": f32[2], "z": i64[1]) {
    %y, %z = circle.custom(%x, none, %x) {custom_code = "my_op", custom_options = "a\x00\xff\"b"} : f32[2], i64[1]
    %e = circle.custom() {custom_code = "other", version = 2} : f32[2]
    %y2, %z2 = circle.custom(%x) {custom_code = "my_op"} : f32[2], i64[1]
    return %y, %z })");
}

TEST_F(RoundTripTest, ControlFlow) {
  same(R"(graph @main(%c: bool[], %x: f32[2]) -> ("y": f32[2], "n": i32[]) {
    %y = circle.if(%c, %c, %x) do (%c1: bool[], %a: f32[2]) {
        %r = circle.relu(%a) : f32[2]
        return %r
      } do (%c2: bool[], %b: f32[2]) {
        %w = core.constant dense<[1.0, 2.0]> : f32[2]
        %m = circle.mul(%b, %w) : f32[2]
        %i = circle.if(%c2, %m) do (%d: f32[2]) { return %d } do (%d: f32[2]) { return %d } : f32[2]
        return %i
      } : f32[2]
    %zero = core.constant dense<0> : i32[]
    %n = circle.while(%zero) do (%i: i32[]) {
        %ten = core.constant dense<10> : i32[]
        %go = circle.less(%i, %ten) : bool[]
        return %go
      } do (%i: i32[]) {
        %one = core.constant dense<1> : i32[]
        %j = circle.add(%i, %one) : i32[]
        return %j
      } : i32[]
    return %y, %n })");
}

TEST_F(RoundTripTest, Variables) {
  const auto g = parse(R"(graph @main(%x: f32[2]) -> ("y": f32[2]) {
    %s = core.state() {name = "counter", value = dense<[1.0, 2.0]> : f32[2]} : f32[2]
    %z = core.state() {name = "cache", value = dense<[0.0, 0.0]> : f32[2]} : f32[2]
    %0 = circle.add(%x, %s) : f32[2]
    %y = circle.add(%0, %z) : f32[2]
    return %y })");
  const Bytes bytes = bytes_of(*g);
  EXPECT_EQ(problems(bytes), "");
  const auto *tensors = ::circle::GetModel(bytes.data())->subgraphs()->Get(0)->tensors();
  EXPECT_TRUE(tensors->Get(1)->is_variable());
  EXPECT_NE(tensors->Get(1)->buffer(), 0u);
  EXPECT_TRUE(tensors->Get(3)->is_variable());
  EXPECT_EQ(tensors->Get(3)->buffer(), 0u) << "zeros are what a variable starts with";
  const auto again = graph_of(bytes);
  EXPECT_EQ(bytes_of(*again), bytes);
}

TEST_F(RoundTripTest, Stateful) {
  same(
      R"(graph @main(%x: f32[1,2], %w: f32[3,2], %r: f32[3,3], %b: f32[3], %h: f32[1,3]) -> ("y": f32[1,3]) {
    %y = circle.rnn(%x, %w, %r, %b, %h) {fused_activation_function = "TANH",
      mutating_variable_inputs = [false, false, false, false, true]} : f32[1,3]
    return %y })");
}

TEST_F(RoundTripTest, DynamicDimensions) {
  const auto g = parse(R"(graph @main(%x: f32[s0,3], %y: f32[s0 + 1,3]) -> ("z": f32[2*s0 + 1,3]) {
    %c = circle.concatenation(%x, %y) {axis = 0} : f32[2*s0 + 1,3]
    %z = circle.relu(%c) : f32[2*s0 + 1,3]
    return %z })");
  const auto again = check(*g, false);
  // Each dynamic input dimension is a symbol of its own; the rest follows from inference.
  EXPECT_EQ(ir::print(ctx, again->return_op()->operand(0)->type()), "f32[d0 + d1,3]");
}

TEST_F(RoundTripTest, EqualConstantsAreStoredOnce) {
  const auto g = parse(R"(graph @main(%x: f32[2,3]) -> ("y": f32[2,3]) {
    %p = core.constant dense<[1, 0]> : i32[2]
    %0 = circle.transpose(%x, %p) : f32[3,2]
    %q = core.constant dense<[1, 0]> : i32[2]
    %1 = circle.transpose(%0, %q) : f32[2,3]
    %a = core.constant dense<[[1.0], [2.0]]> : f32[2,1]
    %2 = circle.add(%1, %a) : f32[2,3]
    %b = core.constant dense<[[1.0], [2.0]]> : f32[2,1] quant([0.5:0])
    %y = circle.add(%2, %b) : f32[2,3]
    return %y })");
  const Bytes bytes = bytes_of(*g);
  EXPECT_EQ(stats.buffers, 3u);
  EXPECT_EQ(stats.constants_shared, 1u);
  // Both pairs of one type and shape are hashed, each byte once.
  EXPECT_EQ(stats.work.bytes_hashed, 8u + 8u + 8u + 8u);
  EXPECT_EQ(stats.work.bytes_copied, 0u);
  const auto *sub = ::circle::GetModel(bytes.data())->subgraphs()->Get(0);
  EXPECT_EQ(sub->operators()->Get(0)->inputs()->Get(1), sub->operators()->Get(1)->inputs()->Get(1));
  EXPECT_NE(sub->operators()->Get(2)->inputs()->Get(1), sub->operators()->Get(3)->inputs()->Get(1));
}

TEST_F(RoundTripTest, AConstantAloneIsNotHashed) {
  const auto g = parse(R"(graph @main(%x: f32[1000]) -> ("y": f32[1000]) {
    %w = core.constant rand(3, -1, 1) : f32[1000]
    %y = circle.add(%x, %w) : f32[1000]
    return %y })");
  bytes_of(*g);
  EXPECT_EQ(stats.work.bytes_hashed, 0u);
  EXPECT_EQ(stats.work.bytes_copied, 0u);
}

TEST_F(RoundTripTest, NamesAreUnique) {
  const auto g = parse(R"(graph @main(%x: f32[2]) -> ("y": f32[2]) {
    %a = circle.relu(%x) : f32[2] loc("node")
    %b = circle.relu(%a) : f32[2] loc("node")
    %node_1 = circle.relu(%b) : f32[2]
    %0 = circle.relu(%node_1) : f32[2] loc("node")
    %1 = circle.relu(%0) : f32[2] loc("node")
    %2 = circle.relu(%1) : f32[2]
    return %2 })");
  const Bytes bytes = bytes_of(*g);
  EXPECT_EQ(problems(bytes), "");
  std::string names;
  for (const auto *t : *::circle::GetModel(bytes.data())->subgraphs()->Get(0)->tensors())
    names += t->name()->str() + " ";
  EXPECT_EQ(names, "x a b node_1 node node_2 relu ");
}

TEST_F(RoundTripTest, PayloadsAreAligned) {
  const auto g = parse(R"(graph @main(%x: f32[3]) -> ("y": f32[3]) {
    %a = core.constant dense<[1.0, 2.0, 3.0]> : f32[3]
    %b = core.constant dense<[true]> : bool[1]
    %c = core.constant dense<[1.0, 2.0, 4.0]> : f32[3]
    %0 = circle.add(%x, %a) : f32[3]
    %1 = circle.select_v2(%b, %0, %c) : f32[3]
    return %1 })");
  for (u64 limit : {u64{0}, u64{1} << 20}) {
    WriteOptions options;
    options.inline_limit = limit;
    const Bytes bytes = bytes_of(*g, options);
    for (const auto *b : *::circle::GetModel(bytes.data())->buffers()) {
      if (b->data()) {
        EXPECT_EQ((reinterpret_cast<const std::byte *>(b->data()->data()) - bytes.data()) % 16, 0);
      }
      EXPECT_EQ(b->offset() % 16, 0u);
      EXPECT_NE(b->size(), 1u) << "a size of 1 means inline";
    }
  }
}

TEST_F(RoundTripTest, FilesAreWrittenWholeAndIdentical) {
  const auto g = parse(R"(graph @main(%x: f32[5]) -> ("y": f32[5]) {
    %w = core.constant rand(3, -1, 1) : f32[5]
    %y = circle.add(%x, %w) : f32[5]
    return %y })");
  const std::string path = ::testing::TempDir() + "roundtrip_test.circle";
  WriteOptions options;
  options.metadata = {{"tool", "x"}, {"blob", std::string("\0\1", 2)}};
  options.description = "about";
  ASSERT_TRUE(write(*g, path, options));
  std::ifstream in(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  const Bytes bytes = bytes_of(*g, options);
  EXPECT_EQ(file, std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  const auto model = read_model(ctx, path);
  ASSERT_TRUE(model) << to_text(model.error());
  EXPECT_EQ(model->metadata, options.metadata);
  EXPECT_EQ(model->description, "about");
  EXPECT_EQ(model->signature_key, "serving_default");
  std::remove(path.c_str());
}

TEST_F(RoundTripTest, WriterErrors) {
  const auto error = [&](std::string_view text) {
    const auto b = write_bytes(*parse(text));
    return b ? std::string("none") : b.error().code;
  };
  EXPECT_EQ(error(R"(graph @m(%x: f8e4m3fn[2]) { return %x })"), "circle.write.type");
  EXPECT_EQ(error(R"(graph @m(%x: f32[2]) {
    %0 = core.unregistered(%x) {target = "t", arg_names = [], args = []} : f32[2] return %0 })"),
            "circle.write.operator");
  EXPECT_EQ(error(R"(graph @m(%x: f32[2]) {
    %0 = circle.softmax(%x) {beta = 1.0, version = 1} : f32[2]
    %1 = circle.cast(%0) {in_data_type = f32, out_data_type = f8e5m2} : f32[2] return %1 })"),
            "circle.operator.option");
}

/// Random programs over static shapes, as a lowering makes them: constants beside their users.
class Random {
public:
  Random(ir::Context &ctx, u32 seed)
      : rng_(seed), graph_(std::make_unique<ir::Graph>(ctx)), b_(*graph_, graph_->body()) {}

  std::unique_ptr<ir::Graph> make(int ops) {
    for (int i = 0; i < 3; ++i) {
      ir::Context &ctx = graph_->context();
      const std::vector<SymInt> shape = {2, 3, static_cast<i64>(4 * (1 + pick(2)))};
      Value *v = graph_->add_argument(graph_->body(), ctx.tensor_type(ElementType::F32, shape),
                                      ctx.intern("in" + std::to_string(i)));
      graph_->inputs().push_back({"in" + std::to_string(i), ir::InputKind::User, v, {}});
      values_.push_back(v);
    }
    for (int i = 0; i < ops; ++i)
      step();
    std::vector<Value *> results;
    for (int i = 0; i < 3; ++i) {
      results.push_back(any());
      graph_->outputs().push_back({"out" + std::to_string(i), ir::OutputKind::User, i, "", {}});
    }
    b_.ret(results);
    return std::move(graph_);
  }

private:
  u32 pick(u32 n) { return static_cast<u32>(rng_() % n); }
  Value *any() {
    return values_[values_.size() - 1 -
                   pick(static_cast<u32>(std::min<size_t>(values_.size(), 6)))];
  }
  Value *ints(std::vector<i32> v, bool scalar = false) { return b_.constant_i32(v, scalar); }

  Value *weights(std::vector<SymInt> shape, ElementType element) {
    std::byte *bytes;
    const ir::Constant *c =
        graph_->add_buffer(graph_->context().tensor_type(element, shape), &bytes);
    for (size_t i = 0; i < c->dense_bytes(); ++i)
      bytes[i] = static_cast<std::byte>(pick(4));
    return b_.constant(c);
  }

  void step() {
    Value *x = any();
    const ir::Type t = x->type();
    const std::vector<i32> all = [&] {
      std::vector<i32> v;
      for (int i = t.rank() - 1; i >= 0; --i)
        v.push_back(i);
      return v;
    }();
    switch (pick(9)) {
    case 0: return add(b_.create(op::LOGISTIC, {x}));
    case 1: return add(b_.create(op::ADD, {x, b_.scalar(ElementType::F32, pick(3))}));
    case 2: return add(b_.create(op::TRANSPOSE, {x, ints(all)}));
    case 3:
      if (t.num_elements() % 2)
        return;
      return add(b_.create(op::RESHAPE, {x, ints({1, -1, 2})},
                           {{"new_shape", graph_->context().ints_attr({1, -1, 2})}}));
    case 4: return add(b_.create(op::CONCATENATION, {x, x, x}, {{"axis", Attr::of_int(-1)}}));
    case 5:
      return add(b_.create(op::FULLY_CONNECTED,
                           {x, weights({4, t.dim(t.rank() - 1)}, ElementType::F32), nullptr},
                           {{"keep_num_dims", Attr::of_bool(true)}}));
    case 6: return add(b_.create(op::SOFTMAX, {x}, {{"beta", Attr::of_float(1)}}));
    case 7: {
      Value *args[] = {x, ints({1, -1}), ints({t.rank() - 1}, true)};
      const ir::NamedAttr attrs[] = {{"num_splits", Attr::of_int(2)}};
      ir::Op *split = b_.create_op(op::SPLIT_V, args, attrs);
      return add(split->result(pick(2)));
    }
    default: {
      Value *args[] = {x, ints({1, 0, 1}, false)};
      return add(
          b_.create(op::MEAN, args, std::array{ir::NamedAttr{"keep_dims", Attr::of_bool(true)}}));
    }
    }
  }
  /// Sizes stay usable: large results are reduced, and their last dimension is even.
  void add(Value *v) {
    if (v->type().num_elements() > 512 || v->type().num_elements() < 16 ||
        v->type().dim(v->type().rank() - 1).value() < 2)
      return;
    values_.push_back(v);
  }

  std::mt19937 rng_;
  std::unique_ptr<ir::Graph> graph_;
  ir::Builder b_;
  std::vector<Value *> values_;
};

TEST_F(RoundTripTest, RandomGraphs) {
  for (u32 seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const auto g = Random(ctx, seed).make(40);
    check(*g, false);
    // An independent build of the same program gives the same bytes, in another context too.
    ir::Context other;
    const auto twin = Random(other, seed).make(40);
    EXPECT_EQ(bytes_of(*twin), bytes_of(*g));
    if (HasFailure())
      break;
  }
}

} // namespace
} // namespace chute::circle
