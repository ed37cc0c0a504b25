#include "pass/lowering.h"

#include "ir/constant_pool.h"
#include "ir/element_convert.h"
#include "ir/text.h"
#include "ir/walk.h"

#include <algorithm>
#include <array>

namespace chute::pass {

using ir::Attr;
using ir::ElementType;
using ir::NamedAttr;
using ir::OpCode;
using ir::SymInt;
using ir::Type;
using ir::Value;

namespace {

std::string target_name(const ir::Op &op) {
  if (op.opcode() == ir::core_op::unregistered)
    return std::string(op.attr("target").as_string());
  return std::string(op.name());
}

} // namespace

void report_refusals(const ir::Graph &graph, const LegalizeState &state,
                     bool (*lowered)(ir::OpCode), std::string_view target, std::string_view code,
                     Diagnostics &diagnostics) {
  const auto is_fine = [&](ir::OpCode code) {
    return lowered(code) || (ir::index(code) < ir::kAtenBase && code != ir::core_op::unregistered);
  };
  if (!graph.has_any([&](ir::OpCode code) { return !is_fine(code); }))
    return;
  struct Group {
    const ir::Op *first;
    Refusal why;
    size_t count;
    std::vector<std::string> modules; // of the other places, each once
  };
  constexpr size_t kNamedModules = 50; // a longer list says no more
  std::vector<Group> groups;
  boost::unordered_flat_map<std::string, size_t> index;
  ir::walk(graph, [&](const ir::Op &op) {
    if (is_fine(op.opcode()))
      return;
    const auto it = state.refusals.find(op.id());
    Refusal why = it != state.refusals.end()
                      ? it->second
                      : Refusal{"no lowering to " + std::string(target) + " is known",
                                "replace it in the model by "
                                "operators that have one"};
    auto [at, fresh] = index.try_emplace(target_name(op) + '\n' + why.reason, groups.size());
    if (fresh)
      groups.push_back({&op, std::move(why), 0, {}});
    Group &group = groups[at->second];
    if (group.count++ && group.modules.size() < kNamedModules) {
      std::string module = at_op(graph, op, ErrorKind::Unsupported, {}, {}, {}).module_path;
      if (!module.empty() && (group.modules.empty() || group.modules.back() != module))
        group.modules.push_back(std::move(module));
    }
  });
  for (const Group &g : groups) {
    std::string text = g.why.reason;
    if (g.count > 1) {
      text += " (" + std::to_string(g.count) + " places; the first is named";
      for (const std::string &module : g.modules)
        text += (&module == g.modules.data() ? "; also in " : ", ") + module;
      text += g.modules.size() == kNamedModules ? ", …)" : ")";
    }
    diagnostics.add(at_op(graph, *g.first, ErrorKind::Unsupported, std::string(code),
                          std::move(text), g.why.hint));
  }
}

double Lowering::number(std::string_view name, double fallback) const {
  const Attr a = attr(name);
  return a.is_none() ? fallback : a.scalar_as_double();
}

Dims Lowering::ints(std::string_view name, size_t n) const {
  Dims out;
  const Attr a = attr(name);
  if (a.kind() == ir::AttrKind::Int)
    out.push_back(a.as_int().value());
  else if (a.kind() == ir::AttrKind::Ints)
    for (SymInt v : a.as_ints())
      out.push_back(v.value());
  if (out.size() == 1 && n > 1)
    out.resize(n, out[0]);
  return out;
}

bool Lowering::is_static(std::string_view name) const {
  const Attr a = attr(name);
  if (a.kind() == ir::AttrKind::Int)
    return a.as_int().is_static();
  if (a.kind() != ir::AttrKind::Ints)
    return a.is_none();
  return std::ranges::all_of(a.as_ints(), [](SymInt v) { return v.is_static(); });
}

Value *Lowering::operator()(OpCode code, std::span<Value *const> operands,
                            std::span<const NamedAttr> attrs) {
  if (!failed_) {
    auto made = b_.try_create(code, operands, attrs);
    if (made)
      return (*made)->result();
    // Recorded types that contradict each other get here, too: they are input.
    failed_ = true;
    rw.error(at_op(graph(), op, ErrorKind::Failure, std::string(dialect_) + ".rule.type",
                   "its lowering does not fit its operands: " + made.error().message,
                   "the archive is damaged, or this is a fault in chute: please report it"));
  }
  return op.result(0);
}

Value *Lowering::operator()(OpCode code, std::initializer_list<Value *> operands,
                            std::initializer_list<NamedAttr> attrs) {
  return (*this)(code, std::span<Value *const>(operands.begin(), operands.size()),
                 std::span<const NamedAttr>(attrs.begin(), attrs.size()));
}

ir::Op *Lowering::typed(OpCode code, std::span<Value *const> operands,
                        std::span<const NamedAttr> attrs, std::span<const Type> types) {
  return b_.create_typed(code, operands, attrs, types);
}

Value *Lowering::typed(OpCode code, std::initializer_list<Value *> operands,
                       std::initializer_list<NamedAttr> attrs, Type type) {
  return b_
      .create_typed(code, std::span<Value *const>(operands.begin(), operands.size()),
                    std::span<const NamedAttr>(attrs.begin(), attrs.size()),
                    std::span<const Type>(&type, 1))
      ->result();
}

template <class Store>
Value *Lowering::dense(ElementType e, std::span<const i64> shape, size_t n, Store &&store) {
  const SymDims dims(shape.begin(), shape.end());
  const Type type = context().tensor_type(e, dims);
  const auto size = static_cast<size_t>(ir::element_bytes(e));
  if (n * size <= ir::ConstantPool::kMaxBytes) {
    std::array<std::byte, ir::ConstantPool::kMaxBytes> bytes{};
    for (size_t i = 0; i < n; ++i)
      store(i, bytes.data() + i * size);
    return b_.constant(type, std::span<const std::byte>(bytes).first(n * size));
  }
  std::byte *bytes = nullptr;
  const ir::Constant *c = graph().add_buffer(type, &bytes);
  for (size_t i = 0; i < n; ++i)
    store(i, bytes + i * size);
  return b_.constant(c);
}

Value *Lowering::constant(ElementType e, std::span<const i64> shape,
                          std::span<const double> values) {
  return dense(e, shape, values.size(),
               [&](size_t i, std::byte *to) { ir::store_element(e, values[i], to); });
}

Value *Lowering::constant_ints(ElementType e, std::span<const i64> shape,
                               std::span<const i64> values) {
  return dense(e, shape, values.size(),
               [&](size_t i, std::byte *to) { ir::store_element_int(e, values[i], to); });
}

std::nullptr_t Lowering::unsupported(std::string reason, std::string hint) {
  static_cast<LegalizeState *>(rw.user())->refusals[op.id()] = {std::move(reason), std::move(hint)};
  return nullptr;
}

bool Lowering::finish(std::span<Value *const> values) {
  if (failed_)
    return false;
  for (u32 i = 0; i < op.num_results(); ++i) {
    if (!values[i])
      continue;
    const Type want = type(i), got = values[i]->type();
    if (want == got)
      continue;
    bool same = want.element() == got.element() && want.rank() == got.rank();
    for (int d = 0; same && d < want.rank(); ++d)
      same = want.dim(d).is_symbolic() || got.dim(d).is_symbolic() || want.dim(d) == got.dim(d);
    if (!same) {
      // A program whose recorded types contradict each other gets here, too: it is input.
      rw.error(at_op(graph(), op, ErrorKind::Failure, std::string(dialect_) + ".rule.type",
                     "its lowering gives " + ir::print(context(), got) +
                         " where the program records " + ir::print(context(), want),
                     "the archive is damaged, or this is a fault in chute: please report it"));
      return false;
    }
    // The exporter's expressions are the ones that inputs and other values share.
    if (values[i]->producer() && !constant_of(values[i]))
      graph().set_type(values[i], want);
  }
  rw.replace(op, values);
  return true;
}

} // namespace chute::pass
