#pragma once

#include "support/ints.h"
#include "support/result.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Arm's Vela compiles TOSA to commands for Ethos-U. It is run as the program `vela` (PyPI:
/// ethos-u-vela), or as $CHUTE_VELA names it.
namespace chute::ethosu {

struct Accelerator {
  std::string name;          ///< "ethos-u55-128"
  std::string system_config; ///< "Ethos_U55_High_End_Embedded"
  std::string memory_mode;   ///< "Shared_Sram"
};
/// The accelerator with the system and memory that ExecuTorch takes for it. Errors: kind Usage,
/// `ethosu.target`, with the names that are known.
Result<Accelerator> parse_accelerator(std::string_view name);

/// One operator of Vela's schedule.
struct Layer {
  std::string name;     ///< of the tensor that it makes, in the TOSA file
  std::string original; ///< operator in the TOSA file
  std::string target;   ///< "NPU" or "CPU"
  double cycles = 0;
  double macs = 0;
  double utilization = 0; ///< of the MAC units, percent
};

/// What Vela says of a network, and what it made of it.
struct Compiled {
  std::vector<Layer> layers;
  std::vector<std::pair<std::string, double>> totals; ///< columns of its summary that are numbers
  double cycles = 0;
  double sram_kib = 0;
  double inference_seconds = 0;
  std::vector<std::byte> stream; ///< the blocks that ExecuTorch's Ethos-U backend loads
};

/// Runs Vela on a TOSA file's bytes, in a folder of its own that is removed again.
///
/// Errors: `ethosu.vela.missing` (kind Unsupported: the program is not installed),
/// `ethosu.vela.failed` (kind Failure: its last lines), `ethosu.vela.result` (kind Failure: its
/// files are not as expected).
Result<Compiled> compile(std::span<const std::byte> tosa, const Accelerator &accelerator);

/// The flags that compile() gives to Vela, as one line.
std::string flags_of(const Accelerator &accelerator);

} // namespace chute::ethosu
