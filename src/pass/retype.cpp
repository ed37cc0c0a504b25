#include "pass/retype.h"

#include "ir/context.h"
#include "ir/element_convert.h"
#include "ir/walk.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>

namespace chute::pass {

namespace {

using ir::ElementType;

i64 kept_inside(ElementType e, i64 v) {
  const int bits = ir::element_bits(e);
  if (bits >= 64 || !ir::is_integer(e))
    return v;
  const i64 high = (i64{1} << (bits - ir::is_signed(e))) - 1;
  return std::clamp(v, ir::is_signed(e) ? -high - 1 : 0, high);
}

const ir::Constant *converted(ir::Graph &graph, const ir::Constant &c, ElementType target) {
  const ir::Type type = graph.context().with_element(c.type, target);
  if (!c.has_data)
    return graph.add_constant(type, nullptr, nullptr, {}, false);
  std::vector<std::byte> from(c.dense_bytes());
  c.copy_dense(from.data());
  std::byte *to = nullptr;
  const ir::Constant *out = graph.add_buffer(type, &to);
  const ElementType e = c.type.element();
  const auto size = static_cast<size_t>(ir::element_bytes(e));
  const auto step = static_cast<size_t>(ir::element_bytes(target));
  const auto n = static_cast<size_t>(c.num_elements());
  const bool whole = ir::is_integer(e) && ir::is_integer(target);
  for (size_t i = 0; i < n; ++i)
    if (whole)
      ir::store_element_int(target, kept_inside(target, ir::load_element_int(e, &from[i * size])),
                            to + i * step);
    else
      ir::store_element(target, ir::load_element(e, &from[i * size]), to + i * step);
  return out;
}

} // namespace

std::string retype(PassContext &ctx, ElementMap map) {
  ir::Graph &graph = ctx.graph;
  bool any = false;
  for (int e = 0; e < ir::kNumElementTypes; ++e)
    any |= map(ElementType(e)) != ElementType(e) && graph.context().has_element(ElementType(e));
  if (!any)
    return {};
  const auto changes = [&](ir::Type t) {
    return t && t.is_tensor() && map(t.element()) != t.element();
  };
  std::string changed;
  const auto note = [&](std::string_view name, ir::Type t) {
    if (changes(t))
      changed += (changed.empty() ? "" : ", ") + std::string(name) + " " +
                 std::string(ir::element_type_name(t.element()));
  };
  for (const ir::InputInfo &in : graph.inputs())
    if (in.value)
      note(in.name, in.value->type());
  for (const ir::OutputInfo &out : graph.outputs())
    if (out.operand >= 0)
      note(out.name, graph.return_op()->operand(static_cast<u32>(out.operand))->type());

  const auto change = [&](ir::Value *v) {
    if (!changes(v->type()))
      return;
    graph.set_type(v, graph.context().with_element(v->type(), map(v->type().element())));
    ++ctx.counters.rewrites;
  };
  boost::unordered_flat_map<const ir::Constant *, const ir::Constant *> constants;
  for (ir::Value *v : graph.body().args())
    change(v);
  ir::walk(graph, [&](ir::Op &op) {
    ++ctx.counters.ops_visited;
    for (ir::Value &v : op.results())
      change(&v);
    for (ir::Region *r : op.regions())
      for (ir::Value *v : r->args())
        change(v);
    for (u32 i = 0; i < op.num_attrs(); ++i) {
      const ir::Attr a = op.attr(i);
      if (a.kind() == ir::AttrKind::Element && map(a.as_element()) != a.as_element()) {
        graph.set_attr(&op, i, ir::Attr::of_element(map(a.as_element())));
      } else if (a.kind() == ir::AttrKind::Constant && changes(a.as_constant()->type)) {
        const ir::Constant *&c = constants[a.as_constant()];
        if (!c)
          c = converted(graph, *a.as_constant(), map(a.as_constant()->type.element()));
        graph.set_attr(&op, i, ir::Attr::of_constant(c));
      }
    }
    return true;
  });
  return changed;
}

} // namespace chute::pass
