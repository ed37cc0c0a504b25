#pragma once

#include "ir/element_type.h"
#include "ir/op.h"
#include "support/result.h"

#include <string>
#include <string_view>

namespace chute::tosa {

/// Profiles and extensions, as bits of a set.
namespace feature {
using Set = u32;
inline constexpr Set kInt = 1u << 0;
inline constexpr Set kFp = 1u << 1;
inline constexpr Set kInt16 = 1u << 2;
inline constexpr Set kInt4 = 1u << 3;
inline constexpr Set kBf16 = 1u << 4;
inline constexpr Set kFp8e4m3 = 1u << 5;
inline constexpr Set kFp8e5m2 = 1u << 6;
inline constexpr Set kFft = 1u << 7;
inline constexpr Set kVariable = 1u << 8;
inline constexpr Set kControlFlow = 1u << 9;
inline constexpr Set kDynamic = 1u << 10;
inline constexpr Set kDoubleRound = 1u << 11;
inline constexpr Set kInexactRound = 1u << 12;
inline constexpr Set kMxfp = 1u << 13;     ///< 1.1
inline constexpr Set kInt64 = 1u << 14;    ///< 1.1
inline constexpr Set kShape = 1u << 15;    ///< 1.1
inline constexpr Set kMxfpConv = 1u << 16; ///< 1.1
inline constexpr Set kAll = (1u << 17) - 1;
} // namespace feature

/// "INT, FP, BF16": the names of a set's members.
std::string feature_names(feature::Set set);

/// What a program has to keep to.
struct Target {
  u8 minor = 0; ///< version 1.<minor>
  feature::Set features = feature::kAll;
  bool level_8k = true; ///< limits of level 8K; otherwise none
};

/// "tosa-1.0", "tosa-1.0+fp+bf16", "TOSA-1.1+INT+FP+int16+8k", "tosa-1.0+int+nolevel". Without a
/// profile everything is allowed. Errors: kind Usage, `tosa.target`.
Result<Target> parse_target(std::string_view text);

} // namespace chute::tosa
