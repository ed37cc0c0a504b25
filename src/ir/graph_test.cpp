#include "ir/graph.h"

#include "aten/ops.h"
#include "ir/builder.h"
#include "ir/verifier.h"
#include "ir/walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace chute::ir {
namespace {

struct Recorder final : Listener {
  std::vector<std::string> events;
  void inserted(Op &op) override { events.push_back("+" + std::string(op.name())); }
  void operand_changed(Op &op) override { events.push_back("~" + std::string(op.name())); }
  void uses_changed(Value &v) override { events.push_back("u" + std::to_string(v.id())); }
  void erased(Op &op) override { events.push_back("-" + std::string(op.name())); }
  void moving(Op &op) override { events.push_back(">" + std::string(op.name())); }
};

class GraphTest : public ::testing::Test {
protected:
  GraphTest() { aten::register_dialect(); }
  Op *relu(Value *x) {
    Op *op = g.create(aten::op::relu, std::array{x}, {}, std::array{x->type()});
    g.append(g.body(), op);
    return op;
  }
  size_t list_length(const Value &v) {
    size_t n = 0;
    for (Use &u : v.uses()) {
      EXPECT_EQ(u.value(), &v);
      EXPECT_EQ(u.owner()->operand(u.operand_index()), &v);
      ++n;
    }
    return n;
  }
  Context ctx;
  Graph g{ctx};
  Type type = ctx.tensor_type(ElementType::F32, {2});
  Value *x = g.add_argument(g.body(), type, ctx.intern("x"));
};

TEST_F(GraphTest, UsesFollowOperands) {
  Op *a = relu(x);
  Op *b = g.create(aten::op::add_Tensor, std::array{a->result(), a->result()},
                   std::array{Attr::of_int(1)}, std::array{type});
  g.append(g.body(), b);
  EXPECT_EQ(a->result()->count_uses(), 2u);
  EXPECT_FALSE(a->result()->has_one_use());
  g.set_operand(b, 0, x);
  EXPECT_TRUE(a->result()->has_one_use());
  EXPECT_EQ(a->result()->first_use()->operand_index(), 1u);
  g.set_operand(b, 1, nullptr);
  EXPECT_FALSE(a->result()->has_uses());
  g.erase(a);
  EXPECT_EQ(g.num_ops(), 1u);
  EXPECT_EQ(g.body().front(), b);
  EXPECT_EQ(x->producer(), nullptr);
  EXPECT_EQ(x->argument_of(), &g.body());
}

TEST_F(GraphTest, ReplaceAllUses) {
  Op *a = relu(x);
  Op *b = relu(a->result());
  Op *c = relu(a->result());
  Op *d = relu(b->result());
  g.replace_all_uses(a->result(), x);
  EXPECT_EQ(b->operand(0), x);
  EXPECT_EQ(c->operand(0), x);
  EXPECT_EQ(list_length(*x), 3u);
  EXPECT_EQ(list_length(*a->result()), 0u);
  g.replace_all_uses(x, x);
  g.replace_all_uses(c->result(), x); // no uses
  EXPECT_EQ(list_length(*x), 3u);
  EXPECT_EQ(d->operand(0), b->result());
}

TEST_F(GraphTest, OrderOfInsertAndMove) {
  Op *a = relu(x);
  Op *c = relu(x);
  Op *b = g.create(aten::op::relu, std::array{x}, {}, std::array{type});
  g.insert_after(a, b);
  EXPECT_EQ(a->next(), b);
  EXPECT_EQ(c->previous(), b);
  g.move_before(c, a);
  EXPECT_EQ(g.body().front(), c);
  EXPECT_EQ(g.body().back(), b);
  EXPECT_EQ(g.body().num_ops(), 3u);
  g.move_before(b, b);
  EXPECT_EQ(g.body().back(), b);
}

TEST_F(GraphTest, ErasedArgumentsCloseTheGap) {
  Value *y = g.add_argument(g.body(), type);
  Value *z = g.add_argument(g.body(), type);
  g.erase_argument(g.body(), 1);
  EXPECT_EQ(g.body().num_args(), 2u);
  EXPECT_EQ(z->index(), 1u);
  static_cast<void>(y);
}

TEST_F(GraphTest, ErasingAnOperatorWithRegionsTellsOfEveryUseThatGoes) {
  Region *r = g.create_region();
  Builder inner(g, *r);
  Value *v = inner.create_typed(aten::op::relu, std::array{x}, {}, std::array{type})->result();
  inner.ret(std::array{v});
  Op *holder = g.create(core_op::unregistered, {},
                        std::array{ctx.string_attr("t"), ctx.strings_attr({}), Attr::none()}, {},
                        {}, std::array{r});
  g.append(g.body(), holder);
  EXPECT_EQ(r->parent_op(), holder);
  Recorder recorder;
  g.set_listener(&recorder);
  g.erase(holder);
  g.set_listener(nullptr);
  EXPECT_EQ(g.num_ops(), 0u);
  EXPECT_FALSE(x->has_uses());
  const auto count = [&](const std::string &e) {
    return std::count(recorder.events.begin(), recorder.events.end(), e);
  };
  EXPECT_EQ(count("u" + std::to_string(x->id())), 1);
  EXPECT_EQ(count("-aten.relu.default"), 1);
  EXPECT_EQ(count("-core.unregistered"), 1);
}

TEST_F(GraphTest, DiscardLeavesNoTrace) {
  const u32 ops = g.num_op_ids(), values = g.num_value_ids();
  const size_t bytes = g.ir_bytes();
  Recorder recorder;
  g.set_listener(&recorder);
  g.discard(g.create(aten::op::relu, std::array{x}, {}, std::array{type}));
  g.set_listener(nullptr);
  EXPECT_TRUE(recorder.events.empty());
  EXPECT_EQ(g.num_op_ids(), ops);
  EXPECT_EQ(g.num_value_ids(), values);
  EXPECT_EQ(g.ir_bytes(), bytes);
  EXPECT_EQ(g.num_ops(), 0u);
  EXPECT_FALSE(x->has_uses());
}

/// Random mutation against a plain model: operands per operator, in order.
TEST_F(GraphTest, RandomMutationKeepsLinksAndOrder) {
  std::mt19937 random(3);
  struct Row {
    Op *op;
    std::vector<Value *> operands;
  };
  std::vector<Row> model;
  std::vector<Value *> available{x};
  for (int step = 0; step < 3000; ++step) {
    const size_t at = model.empty() ? 0 : random() % model.size();
    switch (random() % 5) {
    case 0:
    case 1: {
      std::vector<Value *> operands(1 + random() % 3);
      for (Value *&v : operands)
        v = random() % 6 == 0 ? nullptr : available[random() % available.size()];
      Op *op = g.create(core_op::unregistered, operands,
                        std::array{ctx.string_attr("t"), ctx.strings_attr({}), Attr::none()},
                        std::array{type});
      g.append(g.body(), op);
      model.push_back({op, operands});
      available.push_back(op->result());
      break;
    }
    case 2:
      if (!model.empty()) {
        const size_t i = random() % model[at].operands.size();
        g.set_operand(model[at].op, static_cast<u32>(i), x);
        model[at].operands[i] = x;
      }
      break;
    case 3:
      if (!model.empty()) {
        Value *from = model[at].op->result();
        g.replace_all_uses(from, x);
        for (Row &row : model)
          std::replace(row.operands.begin(), row.operands.end(), from, x);
      }
      break;
    default:
      if (!model.empty() && !model[at].op->result()->has_uses()) {
        std::erase(available, model[at].op->result());
        g.erase(model[at].op);
        model.erase(model.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }
  const Op *op = g.body().front();
  std::map<const Value *, size_t> uses;
  for (const Row &row : model) {
    ASSERT_EQ(op, row.op);
    for (u32 i = 0; i < row.operands.size(); ++i) {
      ASSERT_EQ(op->operand(i), row.operands[i]);
      ++uses[row.operands[i]];
    }
    op = op->next();
  }
  EXPECT_EQ(op, nullptr);
  EXPECT_EQ(g.num_ops(), model.size());
  for (const Value *v : available)
    EXPECT_EQ(list_length(*v), uses[v]);
  Builder(g, g.body()).ret({});
  Diagnostics d;
  verify(g, d);
  EXPECT_FALSE(d.has_errors());
}

class BuilderTest : public GraphTest {
protected:
  std::string error(OpCode code, std::vector<Value *> operands, std::vector<NamedAttr> attrs) {
    Builder b(g, g.body());
    const auto made = b.try_create(code, operands, attrs);
    EXPECT_EQ(g.num_ops(), made ? 1u : 0u);
    return made ? "" : made.error().code;
  }
};

TEST_F(BuilderTest, Errors) {
  const Attr dims = ctx.ints_attr({0});
  EXPECT_EQ(error(aten::op::permute, {x}, {{"dimz", dims}}), "ir.attr.unknown");
  EXPECT_EQ(error(aten::op::permute, {x}, {{"dims", dims}, {"dims", dims}}), "ir.attr.duplicate");
  EXPECT_EQ(error(aten::op::permute, {x}, {{"dims", Attr::of_float(1)}}), "ir.attr.type");
  EXPECT_EQ(error(aten::op::permute, {x}, {{"dims", Attr::none()}}), "ir.attr.type");
  EXPECT_EQ(error(aten::op::permute, {x}, {}), "ir.attr.missing");
  EXPECT_EQ(error(aten::op::permute, {}, {{"dims", dims}}), "ir.operand.count");
  EXPECT_EQ(error(aten::op::permute, {x, x}, {{"dims", dims}}), "ir.operand.count");
  EXPECT_EQ(error(aten::op::permute, {nullptr}, {{"dims", dims}}), "ir.operand.missing");
  EXPECT_FALSE(x->has_uses());
}

TEST_F(BuilderTest, FillsDefaultsAndCoerces) {
  Builder b(g, g.body());
  Op *add = b.create_typed(aten::op::add_Tensor, std::array{x, x}, {}, std::array{type});
  EXPECT_EQ(add->attr("alpha"), Attr::of_int(1));
  Op *permute = b.create_typed(aten::op::permute, std::array{x},
                               std::array{NamedAttr{"dims", Attr::of_int(0)}}, std::array{type});
  EXPECT_EQ(permute->attr("dims"), ctx.ints_attr({0}));
}

TEST_F(BuilderTest, InsertsBeforeAPosition) {
  Op *last = relu(x);
  Builder b(g, g.body(), last);
  const i32 values[] = {1, 2};
  Value *c = b.constant_i32(values);
  EXPECT_EQ(last->previous(), c->producer());
  EXPECT_EQ(c->type(), ctx.tensor_type(ElementType::I32, {2}));
  EXPECT_EQ(b.scalar(ElementType::BF16, 1.5)->type(), ctx.tensor_type(ElementType::BF16, {}));
}

TEST(Interning, DefaultsEqualGivenValues) {
  aten::register_dialect();
  Context ctx;
  for (const OpDef *def : Registry::global().all())
    for (const AttrSpec &spec : def->attrs)
      if (spec.default_value.kind() == AttrKind::Ints) {
        EXPECT_EQ(ctx.ints_attr(spec.default_value.as_ints()), spec.default_value) << def->name;
      }
}

TEST(Interning, OneQuantizationPerMeaning) {
  Context ctx;
  const float scales[] = {0.5f, 0.25f};
  const i64 zeros[] = {0, 0};
  Quantization q;
  q.kind = QuantKind::PerChannel;
  q.scales = scales;
  const Quantization *without = ctx.quantization(q);
  q.zero_points = zeros;
  q.block_size = 7;
  EXPECT_EQ(ctx.quantization(q), without);
  EXPECT_EQ(without->zero_points.size(), 2u);
}

TEST(LocationsTest, MergeKeepsOriginsInOrder) {
  Context ctx;
  Locations l(ctx);
  const LocId a = l.add(ctx.intern("a"), "", "");
  const LocId b = l.add(ctx.intern("b"), "layers.0", "m.py:1", "Linear");
  const LocId c = l.add(ctx.intern("c"), "layers.1", "m.py:2", "Conv");
  EXPECT_EQ(l.merge(a, a), a);
  EXPECT_EQ(l.merge({}, b), b);
  EXPECT_EQ(l.merge(b, {}), b);
  const LocId all = l.merge(l.merge(a, b), l.merge(c, b));
  const Provenance p = l.resolve(all);
  EXPECT_EQ(p.nodes, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(p.module_path, "layers.0");
  EXPECT_EQ(p.source_line, "m.py:1");
  EXPECT_EQ(p.module_type, "Linear");
  EXPECT_EQ(l.node_name(all), "a");
  EXPECT_EQ(l.node_name({}), "");
  LocId chain = a;
  for (int i = 0; i < 100'000; ++i)
    chain = l.merge(chain, l.add(ctx.intern("n" + std::to_string(i)), "", ""));
  EXPECT_EQ(l.resolve(chain).nodes.size(), 64u);
  EXPECT_EQ(l.node_name(chain), "a");
}

} // namespace
} // namespace chute::ir
