#include "toolkit/shrink.h"

#include "circle/infer.h"
#include "circle/ops.h"
#include "ir/walk.h"
#include "pass/constants.h"

#include <algorithm>
#include <set>

namespace chute::toolkit {

namespace {

using ir::Op;
using ir::SymInt;
using ir::Type;
using ir::Value;
using pass::Dims;
namespace op = circle::op;

/// Whether that operand says how large something is.
bool is_shape(const Op &user, u32 operand) {
  const ir::OpCode c = user.opcode();
  if (c == op::RESHAPE || c == op::BROADCAST_TO || c == op::RESIZE_BILINEAR ||
      c == op::RESIZE_NEAREST_NEIGHBOR)
    return operand == 1;
  if (c == op::SLICE)
    return operand == 2;
  if (c == op::STRIDED_SLICE)
    return operand == 2;
  return (c == op::FILL || c == op::TRANSPOSE_CONV) && operand == 0;
}

class Shrinker {
public:
  Shrinker(ir::Graph &graph, i64 from, i64 to) : graph_(graph), from_(from), to_(to) {}

  bool run() {
    for (Value *arg : graph_.body().args())
      if (!set_shape(arg, renamed(arg->type())))
        return false;
    for (Op &op : graph_.body()) {
      if (op.num_regions() || op.opcode() == ir::core_op::state)
        return false;
      if (op.has(ir::trait::kConstant) || op.has(ir::trait::kTerminator))
        continue;
      if (!constants(op) || !results(op))
        return false;
    }
    return changed_;
  }

private:
  Dims renamed(Type t) const {
    Dims out;
    for (SymInt d : t.shape())
      out.push_back(d.is_symbolic() ? -1 : d.value() == from_ ? to_ : d.value());
    return out;
  }

  bool set_shape(Value *v, const Dims &shape) {
    const Type old = v->type();
    if (!old.is_tensor() || !old.has_static_shape())
      return false;
    const std::vector<SymInt> dims(shape.begin(), shape.end());
    const Type now = graph_.context().with_shape(old, dims);
    if (now == old)
      return true;
    if (old.quant() && old.quant()->kind != ir::QuantKind::PerTensor)
      return false;
    changed_ = true;
    graph_.set_type(v, now);
    return true;
  }

  Value *constant_before(Op &user, const ir::Constant *c) {
    const ir::Attr value[] = {ir::Attr::of_constant(c)};
    Op *made = graph_.create(ir::core_op::constant, {}, value, std::span(&c->type, 1));
    graph_.insert_before(*user.parent(), &user, made);
    return made->result();
  }

  /// The constants that `user` takes, in their new shapes or with the new sizes in them.
  bool constants(Op &user) {
    for (u32 i = 0; i < user.num_operands(); ++i) {
      const ir::Constant *c = pass::constant_of(user.operand(i));
      if (!c)
        continue;
      if (is_shape(user, i)) {
        if (user.opcode() != op::RESHAPE && !rename_values(user, i))
          return false;
        continue;
      }
      const Dims shape = renamed(c->type);
      for (size_t d = 0; d < shape.size(); ++d) {
        if (SymInt(shape[d]) == c->type.dim(static_cast<int>(d)))
          continue;
        if (!c->has_data || c->type.quant())
          return false;
        c = pass::sliced(graph_, *c, static_cast<i64>(d), 0, to_, 1);
        changed_ = true;
      }
      if (c != pass::constant_of(user.operand(i)))
        graph_.set_operand(&user, i, constant_before(user, c));
    }
    return true;
  }

  bool rename_values(Op &user, u32 i) {
    std::optional<Dims> values = pass::int_constant(user.operand(i));
    if (!values || std::find(values->begin(), values->end(), from_) == values->end())
      return values.has_value();
    std::replace(values->begin(), values->end(), from_, to_);
    return put_values(user, i, *values);
  }

  bool put_values(Op &user, u32 i, const Dims &values) {
    const Type old = user.operand(i)->type();
    const SymInt n(static_cast<i64>(values.size()));
    const Type type = old.rank() == 1 ? graph_.context().with_shape(old, std::span(&n, 1)) : old;
    const ir::Constant *c = nullptr;
    if (old.element() == ir::ElementType::I32) {
      const std::vector<i32> v(values.begin(), values.end());
      c = graph_.add_copy(type, std::as_bytes(std::span(v)));
    } else if (old.element() == ir::ElementType::I64) {
      c = graph_.add_copy(type, std::as_bytes(std::span(values)));
    } else {
      return false;
    }
    graph_.set_operand(&user, i, constant_before(user, c));
    changed_ = true;
    return true;
  }

  bool results(Op &op) {
    if (op.opcode() == op::RESHAPE)
      return reshape(op);
    std::vector<Type> types;
    const Status s = op.def().infer ? op.def().infer(op, graph_, types) : Status();
    const bool ruled = op.def().infer && (s || s.error().code != circle::kUnknownCode);
    if (!ruled) {
      for (Value &r : op.results())
        if (!set_shape(&r, renamed(r.type())))
          return false;
      return true;
    }
    if (!s || types.size() != op.num_results())
      return false;
    for (u32 i = 0; i < op.num_results(); ++i) {
      if (!types[i] || !types[i].is_tensor() || !types[i].has_static_shape() ||
          !set_shape(op.result(i), pass::static_dims(types[i])))
        return false;
    }
    return true;
  }

  /// The target with `to` for `from`; one dimension takes what is left if that does not hold as
  /// many elements, the one that had a multiple of `from` before others.
  bool reshape(Op &op) {
    const Value *x = op.operand(0);
    if (!x || !x->type().has_static_shape() || !op.result()->type().has_static_shape())
      return false;
    const i64 want = x->type().num_elements();
    const Dims old = pass::static_dims(op.result());
    Dims shape = renamed(op.result()->type());
    if (product(shape) != want) {
      bool fits = false;
      for (const Dims &start : {shape, old})
        for (const bool multiples : {true, false})
          for (size_t d = 0; d < old.size() && !fits; ++d) {
            if (multiples != (old[d] % from_ == 0))
              continue;
            Dims trial = start;
            trial[d] = 1;
            const i64 rest = product(trial);
            if (rest == 0 || want % rest)
              continue;
            trial[d] = want / rest;
            shape = trial;
            fits = true;
          }
      if (!fits)
        return false;
    }
    if (op.num_operands() > 1 && op.operand(1) && shape != old &&
        (!pass::constant_of(op.operand(1)) || !put_values(op, 1, shape)))
      return false;
    const int slot = op.def().attr_index("new_shape");
    if (slot >= 0 && shape != old) {
      const std::vector<SymInt> dims(shape.begin(), shape.end());
      graph_.set_attr(&op, static_cast<u32>(slot), graph_.context().ints_attr(dims));
    }
    return set_shape(op.result(), shape);
  }

  static i64 product(const Dims &shape) {
    i64 n = 1;
    for (i64 d : shape)
      if (__builtin_mul_overflow(n, d, &n))
        return -1;
    return n;
  }

  ir::Graph &graph_;
  i64 from_, to_;
  bool changed_ = false;
};

} // namespace

std::vector<i64> extents(const ir::Graph &graph, size_t most) {
  std::set<i64, std::greater<>> out;
  const auto add = [&](Type t) {
    if (t && t.is_tensor())
      for (SymInt d : t.shape())
        if (d.is_static() && d.value() > 1)
          out.insert(d.value());
  };
  for (const Value *arg : graph.body().args())
    add(arg->type());
  for (const Op &op : graph.body())
    for (const Value &r : op.results())
      add(r.type());
  std::vector<i64> list(out.begin(), out.end());
  list.resize(std::min(list.size(), most));
  return list;
}

u64 count_elements(const ir::Graph &graph) {
  u64 n = 0;
  const auto add = [&](Type t) {
    u64 elements = t && t.is_tensor() ? 1 : 0;
    for (int d = 0; elements && d < t.rank(); ++d)
      if (t.dim(d).is_static() &&
          __builtin_mul_overflow(elements, static_cast<u64>(t.dim(d).value()), &elements))
        elements = u64{1} << 62;
    n = std::min(n + std::min(elements, u64{1} << 62), u64{1} << 62);
  };
  for (const Value *arg : graph.body().args())
    add(arg->type());
  ir::walk(graph, [&](const Op &op) {
    if (!op.has(ir::trait::kConstant))
      for (const Value &r : op.results())
        add(r.type());
  });
  return n;
}

bool shrink_extent(ir::Graph &graph, i64 from, i64 to) {
  return from > to && to >= 1 && Shrinker(graph, from, to).run();
}

} // namespace chute::toolkit
