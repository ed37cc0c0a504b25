#pragma once

#include "ir/builder.h"
#include "ir/op_check.h"
#include "ir/sym_table.h"

#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

/// Random graphs for property tests. Header-only: nothing of it is in the libraries.
namespace chute::ir::testing {

struct RandomGraphOptions {
  size_t num_ops = 40;
  /// Operators are taken from the tables whose names start with this; empty: all that are
  /// registered.
  std::string_view dialect = "aten.";
  /// True: result types are inferred, and only operators whose inference accepts the operands are
  /// kept (fewer than num_ops when few fit). False: any operator with any types, which is well
  /// formed to the verifier but computes nothing sensible.
  bool inferred = false;
  bool regions = true;         ///< nested regions on unregistered operators
  bool symbolic = true;        ///< symbolic dimensions and attributes
  bool quantized = true;       ///< quantized types
  bool odd_names = true;       ///< names that need quotes, or that several values share
  bool interface_kinds = true; ///< literals, state, mutations besides user inputs and outputs
};

/// A function of the seed and the options alone.
class RandomGraph {
public:
  RandomGraph(Context &ctx, u64 seed, RandomGraphOptions options = {})
      : ctx_(ctx),
        options_(options),
        random_(seed),
        graph_(std::make_unique<Graph>(ctx, "random")) {
    for (const OpDef *d : Registry::global().all())
      if (d->name.starts_with(options_.dialect) && !d->has(trait::kTerminator))
        table_.push_back(d);
    if (options_.symbolic)
      for (const char *name : {"s0", "s1", "u7"}) {
        const SymInt s = ctx_.sym().symbol(name);
        ctx_.sym().set_range(s, {2, 64});
        symbols_.push_back(s);
      }
  }

  std::unique_ptr<Graph> make() {
    inputs();
    std::vector<Region *> open{&graph_->body()};
    std::vector<size_t> visible; // values_ when a region was opened
    for (size_t attempt = 0, made = 0; made < options_.num_ops && attempt < options_.num_ops * 20;
         ++attempt) {
      if (options_.regions && chance(20) && open.size() < 4) {
        visible.push_back(values_.size());
        open.push_back(graph_->create_region());
        for (u64 i = 0; i < below(3); ++i)
          keep(graph_->add_argument(*open.back(), type()));
      } else if (open.size() > 1 && chance(10)) {
        close(open, visible);
      } else {
        made += op(*open.back());
      }
    }
    while (open.size() > 1)
      close(open, visible);
    outputs();
    return std::move(graph_);
  }

private:
  u64 below(u64 n) { return n ? random_() % n : 0; }
  bool chance(u64 one_in) { return below(one_in) == 0; }
  template <class T, size_t N>
  T pick(const std::array<T, N> &from) {
    return from[below(N)];
  }

  SymInt integer() {
    if (!symbols_.empty() && chance(4)) {
      SymTable &t = ctx_.sym();
      SymInt e = symbols_[below(symbols_.size())];
      for (u64 i = below(4); i > 0; --i) {
        const SymInt other =
            chance(2) ? symbols_[below(symbols_.size())] : SymInt(static_cast<i64>(below(9)) - 4);
        switch (below(6)) {
        case 0: e = t.add(e, other); break;
        case 1: e = t.mul(e, other); break;
        case 2: e = t.floordiv(e, 2); break;
        case 3: e = t.max(e, other); break;
        case 4: e = t.mod(e, 3); break;
        default: e = t.sub(e, other); break;
        }
      }
      return e;
    }
    if (chance(16))
      return pick(
          std::array<i64, 3>{std::numeric_limits<i64>::max(), -1, std::numeric_limits<i64>::min()});
    return static_cast<i64>(below(6));
  }
  SymInt dim() {
    return !symbols_.empty() && chance(5) ? symbols_[below(symbols_.size())]
                                          : SymInt(static_cast<i64>(below(5)));
  }
  double number() {
    return chance(6) ? pick(std::array<double, 6>{0.0, -0.0, 1e300, 5e-324,
                                                  std::numeric_limits<double>::infinity(),
                                                  std::numeric_limits<double>::quiet_NaN()})
                     : static_cast<double>(static_cast<i64>(random_())) * 0x1p-60;
  }
  std::string text() {
    static constexpr std::array<std::string_view, 6> kTexts{
        "mean", "", "a \"b\"\\", "\x01\x7f\n", "caf\xc3\xa9", "\xff"};
    return std::string(pick(kTexts));
  }
  ElementType element() {
    return options_.inferred ? pick(std::array{ElementType::F32, ElementType::F32, ElementType::I64,
                                               ElementType::Bool})
                             : static_cast<ElementType>(below(kNumElementTypes));
  }
  Type type() {
    if (!options_.inferred && chance(12))
      return pick(std::array{ctx_.none_type(), ctx_.int_type(), ctx_.float_type(), ctx_.bool_type(),
                             ctx_.opaque_type()});
    std::vector<SymInt> shape(options_.inferred && chance(2) ? 2 : below(5));
    for (SymInt &d : shape)
      d = options_.inferred ? SymInt(static_cast<i64>(2 + below(2))) : dim();
    return ctx_.tensor_type(element(), shape, options_.quantized ? quant(shape) : nullptr);
  }
  const Quantization *quant(std::span<const SymInt> shape) {
    if (options_.inferred || !chance(4))
      return nullptr;
    Quantization q;
    std::vector<float> scales(1, 0.25f);
    std::vector<i64> zeros;
    q.kind = static_cast<QuantKind>(below(4));
    if (q.kind != QuantKind::PerTensor) {
      if (shape.empty())
        return nullptr;
      q.axis = static_cast<i32>(below(shape.size()));
      q.block_size = 2;
      i64 n = 1;
      for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i].is_symbolic())
          return nullptr;
        const i64 d = shape[i].value();
        const bool on_axis = static_cast<i32>(i) == q.axis;
        if (q.kind == QuantKind::PerChannel)
          n = on_axis ? d : n;
        else
          n *= on_axis ? (d + 1) / 2 : d;
      }
      scales.assign(q.kind == QuantKind::MX ? 0 : static_cast<size_t>(n), 0.1f);
    }
    if (chance(2))
      for (size_t i = 0; i < scales.size(); ++i)
        zeros.push_back(static_cast<i64>(below(7)) - 3);
    q.scales = scales;
    q.zero_points = zeros;
    return ctx_.quantization(q);
  }
  const Constant *constant() {
    if (!constants_.empty() && chance(3))
      return constants_[below(constants_.size())];
    std::vector<SymInt> shape(below(4));
    for (SymInt &d : shape)
      d = static_cast<i64>(below(options_.inferred ? 3 : 4));
    const Type t = ctx_.tensor_type(element(), shape);
    const Constant *c = nullptr;
    if (!options_.inferred && chance(8)) {
      c = graph_->add_constant(t, nullptr, nullptr, {}, false);
    } else {
      std::byte *bytes = nullptr;
      const Constant *whole = graph_->add_buffer(t, &bytes);
      for (size_t i = 0; i < whole->dense_bytes(); ++i)
        bytes[i] = static_cast<std::byte>(t.element() == ElementType::Bool ? below(2) : below(256));
      const std::vector<i64> strides(shape.size(), 0);
      c = chance(4) && whole->num_elements() > 0
              ? graph_->add_constant(t, whole->data, whole->owner, strides)
              : whole;
    }
    constants_.push_back(c);
    return c;
  }

  Attr attr_of(AttrType t) {
    const auto list = [&](auto &&one) {
      std::vector<decltype(one())> v;
      for (u64 n = below(4); n > 0; --n)
        v.push_back(one());
      return v;
    };
    switch (t) {
    case AttrType::Int: return Attr::of_int(integer());
    case AttrType::Float: return Attr::of_float(number());
    case AttrType::Bool: return Attr::of_bool(chance(2));
    case AttrType::String: return ctx_.string_attr(text());
    case AttrType::Element: return Attr::of_element(element());
    case AttrType::Scalar:
      return chance(8) ? ctx_.complex_attr(number(), number())
                       : attr_of(pick(std::array{AttrType::Int, AttrType::Float, AttrType::Bool}));
    case AttrType::Ints: return ctx_.ints_attr(list([&] { return integer(); }));
    case AttrType::Floats: return ctx_.floats_attr(list([&] { return number(); }));
    case AttrType::Bools: {
      const std::array<bool, 3> v{chance(2), chance(2), chance(2)};
      return ctx_.bools_attr(std::span<const bool>(v.data(), below(4)));
    }
    case AttrType::Strings: {
      const std::vector<std::string> own = list([&] { return text(); });
      return ctx_.strings_attr(std::vector<std::string_view>(own.begin(), own.end()));
    }
    case AttrType::Scalars: return attr_of(chance(2) ? AttrType::Ints : AttrType::Floats);
    case AttrType::OptInts:
      if (chance(2))
        return attr_of(AttrType::Ints);
      return ctx_.list_attr(
          list([&] { return chance(2) ? Attr::none() : Attr::of_int(integer()); }));
    case AttrType::Constant: return Attr::of_constant(constant());
    case AttrType::Type: return Attr::of_type(type());
    case AttrType::Any: break;
    }
    // Any: everything, nested lists included.
    if (chance(3)) {
      std::vector<Attr> items;
      for (u64 n = below(4); n > 0; --n)
        items.push_back(chance(5) ? ctx_.list_attr(items)
                                  : attr_of(static_cast<AttrType>(below(14))));
      return ctx_.list_attr(items);
    }
    return chance(4) ? Attr::none() : attr_of(static_cast<AttrType>(below(14)));
  }

  Value *keep(Value *v) {
    values_.push_back(v);
    if (!chance(3)) {
      std::string name = "v" + std::to_string(below(60));
      if (options_.odd_names && chance(8))
        name = pick(std::array<std::string_view, 4>{"7", "a b", "x.y$z", "\"%\n"});
      graph_->set_name(v, ctx_.intern(name));
    }
    return v;
  }
  Value *value() { return values_.empty() ? nullptr : values_[below(values_.size())]; }

  LocId location() {
    if (chance(2))
      return last_loc_;
    Locations &l = graph_->locations();
    LocId loc = l.add(ctx_.intern(chance(4) ? "" : "node" + std::to_string(below(99))),
                      chance(2) ? "layers.0" : "", chance(2) ? "m.py:" + text() : "",
                      chance(3) ? "torch.nn.Linear" : "");
    if (chance(3))
      loc = l.merge(last_loc_, loc);
    return last_loc_ = loc;
  }

  bool op(Region &region) {
    if (chance(4)) {
      const Constant *c = constant();
      Builder b(*graph_, region);
      b.set_loc(location());
      keep(b.constant(c));
      return true;
    }
    if (table_.empty())
      return false;
    const OpDef &def = *table_[below(table_.size())];
    std::vector<Value *> operands;
    std::vector<SymInt> segments;
    for (const OperandSpec &o : def.operands) {
      const bool many =
          o.arity == OperandArity::Variadic || o.arity == OperandArity::VariadicOptional;
      const bool optional =
          o.arity == OperandArity::Optional || o.arity == OperandArity::VariadicOptional;
      const u64 n = many ? below(4) : 1;
      segments.push_back(static_cast<i64>(n));
      for (u64 i = 0; i < n; ++i) {
        Value *v = optional && chance(3) ? nullptr : value();
        if (!v && !optional)
          return false;
        operands.push_back(v);
      }
    }
    std::vector<NamedAttr> attrs;
    for (const AttrSpec &a : def.attrs) {
      if (a.name == "segments" && def.variadic_operands() >= 2)
        attrs.push_back({a.name, ctx_.ints_attr(segments)});
      else if (!(a.has_default || a.nullable) || chance(2))
        attrs.push_back({a.name, a.nullable && chance(4) ? Attr::none() : attr_of(a.type)});
    }
    Builder b(*graph_, region);
    b.set_loc(location());
    if (options_.inferred) {
      Result<Op *> made = b.try_create(def.opcode, operands, attrs);
      if (!made)
        return false;
      for (Value &r : (*made)->results())
        keep(&r);
      return true;
    }
    std::vector<Type> types;
    for (const ResultSpec &r : def.results)
      for (u64 n = r.variadic ? below(4) : 1; n > 0; --n)
        types.push_back(type());
    for (Value &r : b.create_typed(def.opcode, operands, attrs, types)->results())
      keep(&r);
    return true;
  }

  /// Ends the innermost region and makes the operator that holds it, perhaps with a second, empty
  /// one.
  void close(std::vector<Region *> &open, std::vector<size_t> &visible) {
    std::vector<Region *> regions{open.back()};
    Builder inner(*graph_, *open.back());
    inner.ret(std::array{value()});
    open.pop_back();
    values_.resize(visible.back());
    visible.pop_back();
    if (chance(2)) {
      regions.push_back(graph_->create_region());
      Builder(*graph_, *regions.back()).ret({});
    }
    Builder b(*graph_, *open.back());
    std::vector<Value *> operands;
    std::vector<Attr> args;
    for (u64 n = below(3); n > 0; --n) {
      args.push_back(Attr::of_operand(static_cast<u32>(operands.size())));
      operands.push_back(chance(4) ? nullptr : value());
    }
    args.push_back(Attr::of_region(0));
    args.push_back(attr_of(AttrType::Any));
    const std::vector<Type> types(below(3), type());
    const Op *made =
        b.create_typed(core_op::unregistered, operands,
                       std::array{NamedAttr{"target", ctx_.string_attr("hop." + text())},
                                  NamedAttr{"arg_names", attr_of(AttrType::Strings)},
                                  NamedAttr{"args", ctx_.list_attr(args)}},
                       types, regions);
    for (Value &r : made->results())
      keep(&r);
  }

  void inputs() {
    for (u64 n = 1 + below(4); n > 0; --n) {
      InputInfo info;
      info.value = keep(graph_->add_argument(graph_->body(), type()));
      info.name =
          chance(3) ? std::string(ctx_.string(info.value->name())) : "in" + std::to_string(n);
      if (options_.interface_kinds && chance(4))
        info.kind = InputKind::State;
      graph_->inputs().push_back(std::move(info));
      if (options_.interface_kinds && chance(4)) {
        InputInfo literal;
        literal.kind = InputKind::Literal;
        literal.name = text();
        literal.literal = attr_of(AttrType::Scalar);
        graph_->inputs().push_back(std::move(literal));
      }
    }
    if (options_.interface_kinds && graph_->inputs().size() > 1 && chance(4))
      std::swap(graph_->inputs().front(), graph_->inputs().back());
  }

  void outputs() {
    std::vector<Value *> returned;
    for (u64 n = 1 + below(3); n > 0; --n) {
      OutputInfo info;
      info.name = "out" + std::to_string(n);
      info.operand = static_cast<i32>(returned.size());
      if (options_.interface_kinds && chance(4)) {
        info.kind = chance(2) ? OutputKind::BufferMutation : OutputKind::InputMutation;
        info.target = info.kind == OutputKind::InputMutation ? graph_->inputs()[0].name : text();
      }
      returned.push_back(value());
      graph_->outputs().push_back(std::move(info));
      if (options_.interface_kinds && chance(4)) {
        OutputInfo literal;
        literal.kind = OutputKind::Literal;
        literal.literal = attr_of(AttrType::Scalar);
        graph_->outputs().push_back(std::move(literal));
      }
    }
    Builder(*graph_, graph_->body()).ret(returned);
  }

  Context &ctx_;
  RandomGraphOptions options_;
  std::mt19937_64 random_;
  std::unique_ptr<Graph> graph_;
  std::vector<const OpDef *> table_;
  std::vector<SymInt> symbols_;
  std::vector<Value *> values_; // that an operator made now may use
  std::vector<const Constant *> constants_;
  LocId last_loc_;
};

} // namespace chute::ir::testing
