#pragma once

#include "pt2/payload.h"
#include "pt2/zip.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace chute::pt2 {

/// A tensor of a pickled state dict: where it lies in which storage.
struct PickledTensor {
  ir::ElementType element = ir::ElementType::None;
  std::string_view storage; ///< key: the member `data/<key>`
  std::vector<i64> sizes;
  std::vector<i64> strides;
  i64 offset = 0;
  /// Why it can not be used ("torchao.dtypes.AffineQuantizedTensor"): a Python object of that
  /// class.
  std::string_view object;
};

using StateDict = boost::unordered_flat_map<std::string_view, PickledTensor>;

/// Reads the pickle of a dictionary from names to tensors, as torch.save writes it. Nothing is
/// executed: the few functions that rebuild tensors are known by name, results of every other are
/// opaque objects. The result's strings view `pickle`. Memory and time are linear in its size.
/// Errors: BadInput `pt2.pickle.malformed`, object "where@offset".
Result<StateDict> unpickle_state_dict(std::string_view pickle, const std::string &where);

/// Payloads of archives from torch 2.5 to 2.8: the weights and the constants are each one
/// torch.save archive inside the archive. A null entry is an empty dictionary.
Result<std::unique_ptr<Payloads>> open_pickled_payloads(const Zip &zip, const ZipEntry *weights,
                                                        const ZipEntry *constants,
                                                        u64 max_inflated);

} // namespace chute::pt2
