#include "toolkit/diff.h"

#include "ir/element_convert.h"
#include "ir/text.h"
#include "ir/walk.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cmath>

namespace chute::toolkit {

namespace {

using ir::Op;
using ir::Value;

const ir::Constant *constant_of(const Value *v) {
  const Op *p = v ? v->producer() : nullptr;
  return p && p->opcode() == ir::core_op::constant ? p->attr(0u).as_constant() : nullptr;
}

bool same_constants(const ir::Constant &a, const ir::Constant &b, WorkCounters &work) {
  if (&a == &b)
    return true;
  if (!same_type(a.type, b.type) || a.has_data != b.has_data)
    return false;
  return !a.has_data || a.hash(&work.bytes_hashed) == b.hash(&work.bytes_hashed);
}

/// Stored numbers of two constants, element by element whatever their strides.
void compare_numbers(const ir::Constant &a, const ir::Constant &b, ConstantChange &out) {
  const ir::ElementType s = a.type.element(), t = b.type.element();
  const auto number = [](ir::ElementType e) {
    return ir::is_float(e) || ir::is_integer(e) || e == ir::ElementType::Bool;
  };
  if (!a.has_data || !b.has_data || a.num_elements() != b.num_elements() || !number(s) ||
      !number(t))
    return;
  std::vector<std::byte> x(a.dense_bytes()), y(b.dense_bytes());
  a.copy_dense(x.data());
  b.copy_dense(y.data());
  out.comparable = true;
  for (i64 i = 0; i < out.elements; ++i) {
    const double p = ir::load_element(s, x.data() + i * ir::element_bytes(s));
    const double q = ir::load_element(t, y.data() + i * ir::element_bytes(t));
    if (p == q || (std::isnan(p) && std::isnan(q)))
      continue;
    ++out.differing;
    const double d = std::abs(p - q);
    out.max_abs =
        std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(out.max_abs, d);
  }
}

class Differ {
public:
  Differ(const ir::Graph &a, const ir::Graph &b, const DiffOptions &options)
      : a_(a), b_(b), options_(options), ctx_(a.context()) {
    alignment_ = align(a, b);
    report_.work = alignment_.work;
  }

  DiffReport run() {
    interface();
    number(a_, position_a_);
    number(b_, position_b_);
    std::vector<const Op *> ops_a = nodes(a_), ops_b = nodes(b_);
    report_.operators_a = ops_a.size();
    report_.operators_b = ops_b.size();
    // Additions are shown behind the counterpart that they follow.
    size_t next = 0;
    const auto add_until = [&](const Op *stop) {
      while (next < ops_b.size() && ops_b[next] != stop) {
        if (!alignment_.a_of_b[ops_b[next]->id()])
          added(*ops_b[next]);
        ++next;
      }
    };
    const auto is_behind = [&](const Op *op) { return position_b_[op->id()] >= next; };
    for (const Op *op : ops_a) {
      ++report_.work.ops_visited;
      const Op *other = alignment_.b_of_a[op->id()];
      if (!other) {
        removed(*op);
        continue;
      }
      if (is_behind(other))
        add_until(other);
      compare(*op, *other);
    }
    add_until(nullptr);
    return std::move(report_);
  }

private:
  static std::vector<const Op *> nodes(const ir::Graph &g) {
    std::vector<const Op *> out;
    ir::walk(g, [&](const Op &op) {
      if (op.opcode() != ir::core_op::constant && !op.has(ir::trait::kTerminator))
        out.push_back(&op);
    });
    return out;
  }
  static void number(const ir::Graph &g, std::vector<u32> &position) {
    position.assign(g.num_op_ids(), 0);
    u32 n = 0;
    for (const Op *op : nodes(g))
      position[op->id()] = n++;
  }

  std::string type_text(ir::Type t) const { return t ? ir::print(ctx_, t) : "none"; }

  std::string value_text(const Value *v) const {
    if (!v)
      return "absent";
    const std::string name(ctx_.string(v->name()));
    if (const ir::Constant *c = constant_of(v))
      return (name.empty() ? "constant" : "constant '" + name + "'") + " " + type_text(c->type);
    if (!name.empty())
      return "'" + name + "'";
    const Op *p = v->producer();
    return p ? "result of " + std::string(p->name()) : "argument " + std::to_string(v->index());
  }

  Change describe(ChangeKind kind, const Op &op, const ir::Graph &graph) const {
    Change c;
    c.kind = kind;
    c.op = op.name();
    if (op.num_results())
      c.name = ctx_.string(op.result()->name());
    c.module_path = graph.locations().resolve(op.loc()).module_path;
    return c;
  }
  void removed(const Op &op) {
    Change c = describe(ChangeKind::Removed, op, a_);
    c.position_a = position_a_[op.id()];
    ++report_.removed;
    report_.changes.push_back(std::move(c));
  }
  void added(const Op &op) {
    Change c = describe(ChangeKind::Added, op, b_);
    c.position_b = position_b_[op.id()];
    ++report_.added;
    report_.changes.push_back(std::move(c));
  }

  void compare(const Op &x, const Op &y) {
    details_.clear();
    if (x.opcode() != y.opcode())
      details_.push_back({"operator", std::string(x.name()), std::string(y.name())});
    else
      attributes(x, y);
    operands(x, y);
    for (u32 r = 0; r < std::min(x.num_regions(), y.num_regions()); ++r)
      region_results(x, y, r);
    results(x, y);
    if (details_.empty()) {
      ++report_.same;
      return;
    }
    ++report_.changed;
    Change c = describe(ChangeKind::Changed, y, b_);
    c.position_a = position_a_[x.id()];
    c.position_b = position_b_[y.id()];
    c.details = details_;
    report_.changes.push_back(std::move(c));
  }

  void attributes(const Op &x, const Op &y) {
    for (u32 i = 0; i < std::min(x.num_attrs(), y.num_attrs()); ++i) {
      const ir::Attr s = x.attr(i), t = y.attr(i);
      if (s == t || same_attr(s, t))
        continue;
      details_.push_back({"attribute " + std::string(x.def().attrs[i].name), ir::print(ctx_, s),
                          ir::print(ctx_, t)});
    }
  }
  bool same_attr(ir::Attr s, ir::Attr t) {
    if (s.kind() != t.kind())
      return false;
    if (s.kind() == ir::AttrKind::Constant)
      return same_constants(*s.as_constant(), *t.as_constant(), report_.work);
    if (s.kind() == ir::AttrKind::Type)
      return same_type(s.as_type(), t.as_type());
    return s.kind() == ir::AttrKind::Int && s.as_int().is_symbolic() && t.as_int().is_symbolic();
  }

  /// Whether `y` is the counterpart of `x`; constants by their content.
  bool counterparts(const Value *x, const Value *y) {
    if (!x || !y)
      return x == y;
    const ir::Constant *c = constant_of(x), *d = constant_of(y);
    if (c || d)
      return c && d && same_constants(*c, *d, report_.work);
    if (alignment_.value_b_of_a[x->id()] == y)
      return true;
    // Region arguments of operators whose regions were not paired, and further results.
    const Op *p = x->producer(), *q = y->producer();
    return p && q && alignment_.b_of_a[p->id()] == q && x->index() == y->index();
  }

  void operand(const std::string &what, const Value *x, const Value *y) {
    ++report_.work.ops_visited;
    if (counterparts(x, y))
      return;
    const ir::Constant *c = constant_of(x), *d = constant_of(y);
    if (c && d)
      constants(*x, *y, *c, *d);
    else
      details_.push_back({what, value_text(x), value_text(y)});
  }

  void operands(const Op &x, const Op &y) {
    const u32 n = std::max(x.num_operands(), y.num_operands());
    const auto at = [](const Op &op, u32 i) {
      return i < op.num_operands() ? op.operand(i) : nullptr;
    };
    u32 first = 0;
    if (x.has(ir::trait::kCommutative) && n >= 2 && counterparts(at(x, 0), at(y, 1)) &&
        counterparts(at(x, 1), at(y, 0)))
      first = 2; // the same sum the other way round
    for (u32 i = first; i < n; ++i)
      operand("operand " + std::to_string(i), at(x, i), at(y, i));
  }

  void region_results(const Op &x, const Op &y, u32 r) {
    const Op *s = x.region(r)->back(), *t = y.region(r)->back();
    if (!s || !t)
      return;
    for (u32 i = 0; i < std::max(s->num_operands(), t->num_operands()); ++i)
      operand("result " + std::to_string(i) + " of region " + std::to_string(r),
              i < s->num_operands() ? s->operand(i) : nullptr,
              i < t->num_operands() ? t->operand(i) : nullptr);
  }

  void results(const Op &x, const Op &y) {
    if (x.num_results() != y.num_results())
      details_.push_back(
          {"number of results", std::to_string(x.num_results()), std::to_string(y.num_results())});
    for (u32 i = 0; i < std::min(x.num_results(), y.num_results()); ++i) {
      const Value &s = *x.result(i), &t = *y.result(i);
      if (!same_type(s.type(), t.type()))
        details_.push_back(
            {"type of result " + std::to_string(i), type_text(s.type()), type_text(t.type())});
      if (options_.names && !(s.name() == t.name()))
        details_.push_back({"name of result " + std::to_string(i),
                            std::string(ctx_.string(s.name())),
                            std::string(ctx_.string(t.name()))});
    }
  }

  void constants(const Value &x, const Value &y, const ir::Constant &c, const ir::Constant &d) {
    if (!constants_seen_.insert({&c, &d}).second)
      return;
    ConstantChange change;
    change.name_a = ctx_.string(x.name());
    change.name_b = ctx_.string(y.name());
    change.type_a = type_text(c.type);
    change.type_b = type_text(d.type);
    change.elements = c.num_elements();
    compare_numbers(c, d, change);
    report_.constants.push_back(std::move(change));
  }

  void interface() {
    auto &out = report_.interface;
    const auto ports = [&](const char *side, const auto &a, const auto &b, auto &&type) {
      if (a.size() != b.size())
        out.push_back({std::string("number of ") + side + "s", std::to_string(a.size()),
                       std::to_string(b.size())});
      for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        const std::string what = std::string(side) + " " + std::to_string(i);
        if (a[i].name != b[i].name)
          out.push_back({what + " name", a[i].name, b[i].name});
        const ir::Type s = type(a_, a[i]), t = type(b_, b[i]);
        if (!(s == t) && !same_type(s, t))
          out.push_back({what + " type", type_text(s), type_text(t)});
        if (a[i].kind != b[i].kind)
          out.push_back({what + " kind", std::to_string(static_cast<int>(a[i].kind)),
                         std::to_string(static_cast<int>(b[i].kind))});
      }
    };
    ports("input", a_.inputs(), b_.inputs(), [](const ir::Graph &, const ir::InputInfo &i) {
      return i.value ? i.value->type() : ir::Type();
    });
    const auto returned = [](const ir::Graph &g, const ir::OutputInfo &o) -> const Value * {
      const Op *ret = g.return_op();
      return ret && o.operand >= 0 ? ret->operand(static_cast<u32>(o.operand)) : nullptr;
    };
    ports("output", a_.outputs(), b_.outputs(), [&](const ir::Graph &g, const ir::OutputInfo &o) {
      const Value *v = returned(g, o);
      return v ? v->type() : ir::Type();
    });
    for (size_t i = 0; i < std::min(a_.outputs().size(), b_.outputs().size()); ++i) {
      const Value *x = returned(a_, a_.outputs()[i]), *y = returned(b_, b_.outputs()[i]);
      if (!counterparts(x, y)) {
        const ir::Constant *c = constant_of(x), *d = constant_of(y);
        if (c && d)
          constants(*x, *y, *c, *d);
        else
          out.push_back({"output " + std::to_string(i) + " value", value_text(x), value_text(y)});
      }
    }
  }

  const ir::Graph &a_;
  const ir::Graph &b_;
  const DiffOptions &options_;
  const ir::Context &ctx_;
  Alignment alignment_;
  DiffReport report_;
  std::vector<u32> position_a_; // by Op::id
  std::vector<u32> position_b_;
  std::vector<Detail> details_; // of the pair that is being compared
  boost::unordered_flat_set<std::pair<const ir::Constant *, const ir::Constant *>> constants_seen_;
};

} // namespace

DiffReport diff(const ir::Graph &a, const ir::Graph &b, const DiffOptions &options) {
  return Differ(a, b, options).run();
}

} // namespace chute::toolkit
