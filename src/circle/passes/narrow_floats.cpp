// narrow-floats: every f64, f16 and bf16 tensor becomes f32, inputs, outputs and constants
// included.
//
// Circle's runtimes compute in f32. Element type attributes (casts, creation) follow. One note
// (`circle.narrowed`) names the inputs and outputs whose type changes. Values outside the range of
// f32 become infinite, as a cast would make them. Runs before legalization.
#include "circle/passes.h"

#include "ir/element_convert.h"
#include "ir/walk.h"

#include <boost/unordered/unordered_flat_map.hpp>

namespace chute::circle {

namespace {

using ir::ElementType;

bool narrows(ElementType e) {
  return e == ElementType::F64 || e == ElementType::F16 || e == ElementType::BF16;
}
bool narrows(ir::Type t) { return t && t.is_tensor() && narrows(t.element()); }

const ir::Constant *converted(ir::Graph &graph, const ir::Constant &c) {
  const ir::Type type = graph.context().with_element(c.type, ElementType::F32);
  if (!c.has_data)
    return graph.add_constant(type, nullptr, nullptr, {}, false);
  std::vector<std::byte> from(c.dense_bytes());
  c.copy_dense(from.data());
  std::byte *to = nullptr;
  const ir::Constant *out = graph.add_buffer(type, &to);
  const ElementType e = c.type.element();
  const auto size = static_cast<size_t>(ir::element_bytes(e));
  const auto n = static_cast<size_t>(c.num_elements());
  for (size_t i = 0; i < n; ++i)
    ir::store_element(ElementType::F32, ir::load_element(e, from.data() + i * size), to + i * 4);
  return out;
}

} // namespace

void narrow_floats(pass::PassContext &ctx) {
  ir::Graph &graph = ctx.graph;
  boost::unordered_flat_map<const ir::Constant *, const ir::Constant *> constants;
  std::string changed;
  const auto note = [&](std::string_view name, ir::Type t) {
    if (narrows(t))
      changed += (changed.empty() ? "" : ", ") + std::string(name) + " " +
                 std::string(ir::element_type_name(t.element()));
  };
  for (const ir::InputInfo &in : graph.inputs())
    if (in.value)
      note(in.name, in.value->type());
  for (const ir::OutputInfo &out : graph.outputs())
    if (out.operand >= 0)
      note(out.name, graph.return_op()->operand(static_cast<u32>(out.operand))->type());

  const auto retype = [&](ir::Value *v) {
    if (narrows(v->type())) {
      graph.set_type(v, graph.context().with_element(v->type(), ElementType::F32));
      ++ctx.counters.rewrites;
    }
  };
  for (ir::Value *v : graph.body().args())
    retype(v);
  ir::walk(graph, [&](ir::Op &op) {
    ++ctx.counters.ops_visited;
    for (ir::Value &v : op.results())
      retype(&v);
    for (ir::Region *r : op.regions())
      for (ir::Value *v : r->args())
        retype(v);
    for (u32 i = 0; i < op.num_attrs(); ++i) {
      const ir::Attr a = op.attr(i);
      if (a.kind() == ir::AttrKind::Element && narrows(a.as_element())) {
        graph.set_attr(&op, i, ir::Attr::of_element(ElementType::F32));
      } else if (a.kind() == ir::AttrKind::Constant && narrows(a.as_constant()->type)) {
        const ir::Constant *&c = constants[a.as_constant()];
        if (!c)
          c = converted(graph, *a.as_constant());
        graph.set_attr(&op, i, ir::Attr::of_constant(c));
      }
    }
    return true;
  });
  if (changed.empty())
    return;
  Diagnostic d;
  d.severity = Severity::Note;
  d.kind = ErrorKind::None;
  d.code = "circle.narrowed";
  d.message = "these inputs and outputs are f32 in the Circle file: " + changed;
  ctx.diagnostics.add(std::move(d));
}

} // namespace chute::circle
