#include "circle/legalize/sizes.h"

#include "circle/legalize/emit.h"
#include "ir/sym_table.h"
#include "ir/walk.h"

#include <numeric>

namespace chute::circle {

namespace {

/// Deeper expressions than any program has; a guard for damaged files.
constexpr int kDeepest = 64;

/// The tensor that stands for a number.
Type tensor_of_number(ir::Context &ctx, Type t) {
  switch (t.kind()) {
  case ir::TypeKind::Int: return ctx.tensor_type(ElementType::I64, {});
  case ir::TypeKind::Float: return ctx.tensor_type(ElementType::F32, {});
  case ir::TypeKind::Bool: return ctx.tensor_type(ElementType::Bool, {});
  default: return t;
  }
}

/// Where `user` reads the symbol: not in its own result, should that be the first to have it.
std::optional<SizeSources::Source> source_for(const SizeSources &sources, const ir::Op &user,
                                              SymInt symbol) {
  const auto s = sources.find(*user.parent(), symbol);
  return s && s->value->producer() == &user ? std::nullopt : s;
}

} // namespace

void SizeSources::add_dim(const ir::SymTable &sym, PerRegion &r, Value *value, int dim,
                          SymInt size) {
  if (!size.is_symbolic())
    return;
  const auto add = [&](SymInt symbol, SymInt offset, i64 factor) {
    const bool argument = value->argument_of() != nullptr;
    const auto [it, fresh] =
        r.entries.try_emplace(symbol.raw(), Entry{{value, dim, offset, factor}, -1});
    if (!fresh || argument)
      return;
    it->second.pinned = static_cast<i32>(r.to_pin.size());
    r.to_pin.push_back(value);
  };
  if (!sym.symbol_name(size).empty())
    return add(size, 0, 1);
  // factor * symbol + a literal
  SymInt symbol = 0;
  i64 factor = 0, offset = 0;
  for (const ir::SymTable::Term &t : sym.terms(size)) {
    if (t.atoms.empty()) {
      offset = t.coefficient;
    } else if (t.atoms.size() == 1 && factor == 0 && !sym.symbol_name(t.atoms[0]).empty()) {
      symbol = t.atoms[0];
      factor = t.coefficient;
    } else {
      return;
    }
  }
  if (factor > 0)
    add(symbol, offset, factor);
}

void SizeSources::add_value(const ir::Context &ctx, PerRegion &r, Value *value) {
  const Type t = value->type();
  if (t.kind() == ir::TypeKind::Int && value->name()) {
    // A number that a size is called by: its name is the symbol's.
    const auto s = const_cast<ir::SymTable &>(ctx.sym()).symbol(ctx.string(value->name()));
    add_dim(ctx.sym(), r, value, -1, s);
  } else if (t.is_tensor()) {
    for (int d = 0; d < t.rank(); ++d)
      add_dim(ctx.sym(), r, value, d, t.dim(d));
  }
}

void SizeSources::collect(ir::Graph &graph) {
  ir::Context &ctx = graph.context();
  const auto enter = [&](ir::Region &region) {
    PerRegion &r = regions_[&region];
    order_.push_back(&region);
    for (Value *arg : region.args())
      add_value(ctx, r, arg);
    for (Value *arg : region.args())
      graph.set_type(arg, tensor_of_number(ctx, arg->type()));
  };
  enter(graph.body());
  ir::walk(graph, [&](ir::Op &op) {
    for (ir::Region *nested : op.regions())
      enter(*nested);
    for (Value &v : op.results()) {
      const bool number = !v.type().is_tensor();
      if (op.opcode() != ir::core_op::size && (number || !v.type().has_static_shape()))
        add_value(ctx, regions_[op.parent()], &v);
      if (number)
        graph.set_type(&v, tensor_of_number(ctx, v.type()));
    }
  });
  const ir::Attr attrs[3] = {ctx.string_attr("sizes"), ctx.strings_attr({}), ctx.list_attr({})};
  for (ir::Region *region : order_) {
    PerRegion &r = regions_[region];
    if (r.to_pin.empty() || !region->back())
      continue;
    r.pin = graph.create(ir::core_op::unregistered, r.to_pin, attrs, {});
    graph.insert_before(*region, region->back(), r.pin);
  }
}

void SizeSources::release(ir::Graph &graph) {
  for (ir::Region *region : order_)
    if (PerRegion &r = regions_[region]; r.pin) {
      graph.erase(r.pin);
      r.pin = nullptr;
    }
}

std::optional<SizeSources::Source> SizeSources::find(const ir::Region &region,
                                                     SymInt symbol) const {
  const auto at = regions_.find(&region);
  if (at == regions_.end())
    return {};
  const auto it = at->second.entries.find(symbol.raw());
  if (it == at->second.entries.end())
    return {};
  Source s = it->second.source;
  if (it->second.pinned >= 0)
    s.value = at->second.pin->operand(static_cast<u32>(it->second.pinned));
  return s;
}

// --- expressions
// ---------------------------------------------------------------------------------

Value *Emit::shape_of(Value *x) {
  return typed(op::SHAPE, {x}, {{"out_type", of(ElementType::I32)}},
               context().tensor_type(ElementType::I32, {SymInt(x->type().rank())}));
}

/// A symbol as an i32 value.
Value *Emit::symbol_value(SymInt symbol) {
  const auto s = source_for(size_sources(), op, symbol);
  if (!s)
    return nullptr;
  Value *v = nullptr;
  if (s->dim < 0)
    v = cast(reshape(s->value, rank0_ ? Dims{} : Dims{1}), ElementType::I32);
  else if (rank0_)
    v = typed(op::STRIDED_SLICE,
              {shape_of(s->value), i32s({s->dim}), i32s({s->dim + 1}), i32s({1})},
              {{"shrink_axis_mask", of(i64{1})}}, context().tensor_type(ElementType::I32, {}));
  else
    v = slice(shape_of(s->value), 0, s->dim, s->dim + 1);
  if (!(s->offset == SymInt(0)))
    v = sub(v, size_literal(s->offset.value()));
  if (s->factor != 1)
    v = (*this)(op::FLOOR_DIV, {v, size_literal(s->factor)});
  return v;
}

Value *Emit::atom_value(SymInt e, int depth) {
  const ir::SymTable &sym = context().sym();
  const auto atom = sym.atom(e);
  if (!atom || atom->op == ir::SymOp::Opaque)
    return nullptr;
  if (atom->op == ir::SymOp::Symbol)
    return symbol_value(e);
  std::vector<Value *> x;
  for (const SymInt a : atom->args) {
    x.push_back(size_value(a, depth + 1));
    if (!x.back())
      return nullptr;
  }
  const auto truth = [&](OpCode code) {
    return cast((*this)(code, {x[0], x[1]}), ElementType::I32);
  };
  switch (atom->op) {
  case ir::SymOp::FloorDiv: return (*this)(op::FLOOR_DIV, {x[0], x[1]});
  case ir::SymOp::CeilDiv: {
    Value *up = sub(add(x[0], x[1]), size_literal(1));
    return (*this)(op::FLOOR_DIV, {up, x[1]});
  }
  case ir::SymOp::TrueDivToInt: return div(x[0], x[1]);
  case ir::SymOp::Mod: return sub(x[0], mul((*this)(op::FLOOR_DIV, {x[0], x[1]}), x[1]));
  // Not MAXIMUM and MINIMUM: onert has them for floats only.
  case ir::SymOp::Max: return select((*this)(op::LESS, {x[0], x[1]}), x[1], x[0]);
  case ir::SymOp::Min: return select((*this)(op::LESS, {x[0], x[1]}), x[0], x[1]);
  case ir::SymOp::Where: return select((*this)(op::NOT_EQUAL, {x[0], size_literal(0)}), x[1], x[2]);
  case ir::SymOp::Eq: return truth(op::EQUAL);
  case ir::SymOp::Ne: return truth(op::NOT_EQUAL);
  case ir::SymOp::Lt: return truth(op::LESS);
  case ir::SymOp::Le: return truth(op::LESS_EQUAL);
  default: return nullptr;
  }
}

Value *Emit::size_value(SymInt e, int depth) {
  if (e.is_static())
    return size_literal(e.value());
  if (depth > kDeepest)
    return nullptr;
  Value *sum = nullptr;
  i64 literal = 0;
  Value *minus = nullptr;
  for (const ir::SymTable::Term &t : context().sym().terms(e)) {
    if (t.atoms.empty()) {
      literal = t.coefficient;
      continue;
    }
    Value *product = nullptr;
    for (const SymInt atom : t.atoms) {
      Value *v = atom_value(atom, depth + 1);
      if (!v)
        return nullptr;
      product = product ? mul(product, v) : v;
    }
    const i64 factor = std::abs(t.coefficient);
    if (factor != 1)
      product = mul(product, size_literal(factor));
    Value *&side = t.coefficient < 0 ? minus : sum;
    side = side ? add(side, product) : product;
  }
  if (!sum)
    sum = size_literal(literal);
  else if (literal != 0)
    sum = literal > 0 ? add(sum, size_literal(literal)) : sub(sum, size_literal(-literal));
  return minus ? sub(sum, minus) : sum;
}

Value *Emit::size_scalar(SymInt e, ElementType element) {
  if (e.is_static())
    return scalar(element, static_cast<double>(e.value()));
  rank0_ = true;
  Value *v = size_value(e);
  rank0_ = false;
  return v ? cast(v, element) : nullptr;
}

Value *Emit::sizes_operand(std::span<const SymInt> sizes, std::initializer_list<Value *> sources) {
  // A run of parts that one SHAPE gives: dimensions begin … end of `of`.
  struct Part {
    Value *of = nullptr;
    i64 begin = 0, end = 0;
    Value *value = nullptr;
  };
  std::vector<Part> parts;
  Dims literals;
  const auto flush = [&] {
    if (!literals.empty())
      parts.push_back({nullptr, 0, 0, i32s(literals)});
    literals.clear();
  };
  for (Value *s : sources)
    if (s->type().is_tensor() && std::ranges::equal(s->type().shape(), sizes))
      return shape_of(s);
  for (const SymInt d : sizes) {
    if (d.is_static()) {
      literals.push_back(d.value());
      continue;
    }
    flush();
    Part part;
    const auto known = source_for(size_sources(), op, d);
    if (known && known->dim >= 0 && known->factor == 1 && known->offset == SymInt(0))
      part = {known->value, known->dim, known->dim + 1, nullptr};
    for (Value *s : sources)
      for (int i = 0; i < s->type().rank() && !part.of; ++i)
        if (s->type().dim(i) == d)
          part = {s, i, i + 1, nullptr};
    if (part.of && !parts.empty() && parts.back().of == part.of && parts.back().end == part.begin) {
      parts.back().end = part.end;
      continue;
    }
    if (!part.of && !(part.value = size_value(d)))
      return nullptr;
    parts.push_back(part);
  }
  flush();
  std::vector<Value *> values;
  for (const Part &p : parts)
    values.push_back(p.of ? slice(shape_of(p.of), 0, p.begin, p.end) : p.value);
  return values.empty() ? i32s(Dims{}) : concat(values, 0);
}

Value *Emit::shape_operand(std::span<const SymInt> shape, std::initializer_list<Value *> sources,
                           bool infer_one) {
  SymDims stated(shape.begin(), shape.end());
  if (infer_one) {
    // RESHAPE finds one dimension itself: a computed one rather than one that is there to be read.
    size_t best = shape.size();
    for (size_t i = 0; i < stated.size(); ++i)
      if (stated[i].is_symbolic() &&
          (best == shape.size() || !source_for(size_sources(), op, stated[i])))
        best = i;
    if (best < shape.size())
      stated[best] = -1;
  }
  return sizes_operand(stated, sources);
}

} // namespace chute::circle
