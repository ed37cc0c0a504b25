// Operators that are called by the name of their packet: "aten.mul" for "aten.mul.Tensor". The
// arguments tell which overload is meant: tensors where it has operands, anything else where it has
// attributes, and nothing missing.

#include "pt2/import.h"

#include "aten/ops.h"

namespace chute::pt2 {

namespace {

/// "aten.mul" but not "aten.mul.Tensor".
bool is_packet(std::string_view name) {
  constexpr std::string_view kAten = "aten.";
  return name.starts_with(kAten) && name.find('.', kAten.size()) == name.npos;
}

} // namespace

bool Importer::fits(Target &t, const Decoded &d, const DecodedNode &n) {
  u64 attrs = 0, operands = 0;
  for (u32 i = 0; i < n.num_inputs; ++i) {
    const NamedItem &in = d.inputs[n.first_input + i];
    const i32 where = place(t, i, in.name);
    if (where == Target::kUnknown)
      return false;
    if (where == Target::kIgnored)
      continue;
    const ArgTag tag = in.value.tag;
    const bool tensor = tag == ArgTag::Tensor || tag == ArgTag::Tensors;
    if (where >= 0 ? tensor : !tensor && tag != ArgTag::None)
      return false;
    (where >= 0 ? attrs : operands) |=
        u64{1} << (where >= 0 ? static_cast<size_t>(where) : Target::spec_of(where));
  }
  for (size_t i = 0; i < t.def->operands.size(); ++i)
    if (t.def->operands[i].arity == ir::OperandArity::One && !(operands >> i & 1))
      return false;
  return !(t.required_attrs & ~attrs);
}

Target *Importer::overload(const Target &packet, const Decoded &d, const DecodedNode &n) {
  if (!is_packet(packet.name))
    return nullptr;
  // Looked for once per name: the overloads that the table has.
  const auto [known, fresh] = packets_.try_emplace(&packet);
  if (fresh)
    for (u16 i = 0; i < static_cast<u16>(aten::OpIndex::Count); ++i) {
      const ir::OpDef &def =
          ir::Registry::global().def(ir::OpCode{static_cast<u16>(ir::kAtenBase + i)});
      if (def.name.size() > packet.name.size() && def.name.starts_with(packet.name) &&
          def.name[packet.name.size()] == '.')
        known->second.push_back(&target(def.name));
    }
  const std::vector<Target *> found = known->second; // target() may have moved the map's entries
  for (Target *t : found)
    if (t->kind == Target::Kind::Registered && fits(*t, d, n))
      return t;
  return nullptr;
}

} // namespace chute::pt2
