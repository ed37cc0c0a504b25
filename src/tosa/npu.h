#pragma once

#include "tosa/verify.h"

#include <optional>
#include <string_view>

namespace chute::tosa {

/// Families of Arm's neural processors that execute TOSA.
enum class Npu : u8 { EthosU55, EthosU65, EthosU85 };

/// The family of "ethos-u55-128" and its kin; nothing for other names.
std::optional<Npu> npu_of(std::string_view accelerator);
/// Profiles and extensions that the family executes: INT, 16-bit activations, 4-bit weights; on
/// U85 control flow as well.
Target npu_target(Npu npu);

/// What keeps one operator of an integer program off the processor beyond npu_target(): operators
/// and element types it lacks, limits of kernels, strides, sizes, batches and factors. Code
/// `tosa.ethosu`. Limits that depend on memory or scheduling are Vela's to find.
std::optional<Violation> check_npu(const ir::Op &op, Npu npu);

} // namespace chute::tosa
