#include "aten/infer.h"
#include "aten/ops.h"
#include "aten/schema.h"

#include <array>

namespace chute::aten {

namespace {

struct Row {
  ir::OpCode code;
  ir::trait::Set traits;
  ir::InferFn infer;
  std::string_view name;
  std::string_view schema;
};

namespace trait = ir::trait;
constexpr Row kRows[] = {
#define ATEN_OP(id, traits, infer, name, schema) {op::id, traits, infer, name, schema},
#include "aten/table/all.inc"
};
constexpr size_t kNumRows = sizeof(kRows) / sizeof(kRows[0]);

struct Tables {
  std::array<Schema, kNumRows> schemas;
  std::array<ir::OpDef, kNumRows> defs;
};

} // namespace

void register_dialect() {
  ir::register_core_dialect();
  static const Tables *tables = [] {
    auto *t = new Tables; // lives as long as the registry, which never dies
    ir::Registry &registry = ir::Registry::global();
    for (size_t i = 0; i < kNumRows; ++i) {
      const Row &row = kRows[i];
      t->schemas[i] = parse_schema(row.schema, registry.context());
      const Schema &s = t->schemas[i];
      t->defs[i] = {row.name, row.code,  row.traits, s.operands,
                    s.attrs,  s.results, row.infer,  nullptr};
    }
    registry.add(t->defs);
    return t;
  }();
  static_cast<void>(tables);
}

} // namespace chute::aten
