#pragma once

#include "ir/element_type.h"

#include <optional>

namespace chute::pt2 {

/// Element type of a serialized ScalarType code (torch/_export/serde numbering, not c10's).
inline std::optional<ir::ElementType> element_of_code(i64 code) {
  using E = ir::ElementType;
  switch (code) {
  case 1: return E::U8;
  case 2: return E::I8;
  case 3: return E::I16;
  case 4: return E::I32;
  case 5: return E::I64;
  case 6: return E::F16;
  case 7: return E::F32;
  case 8: return E::F64;
  case 9: return E::C32;
  case 10: return E::C64;
  case 11: return E::C128;
  case 12: return E::Bool;
  case 13: return E::BF16;
  case 28: return E::U16;
  case 29: return E::F8E4M3FN;
  case 30: return E::F8E5M2;
  case 31: return E::F8E4M3FNUZ;
  case 32: return E::F8E5M2FNUZ;
  case 33: return E::F8E8M0FNU;
  case 34: return E::U32;
  case 35: return E::U64;
  default: return std::nullopt;
  }
}

} // namespace chute::pt2
