#pragma once

#include "eval/tensor.h"
#include "support/result.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chute::eval {

/// NumPy files, the format in which inputs and outputs of programs travel. Element types map to the
/// dtypes of the same name; numpy has none for bf16, the eight-bit floats and the sub-byte
/// integers: these are written as numpy's next wider type that holds every value (f32, u1, i1), or
/// with `raw_narrow_floats` as the bits of bf16 (u2) and fp8 (u1). Reading gives what the file
/// says; the dtype V2, which ml_dtypes writes for its bfloat16, is read as BF16.
struct NpyWriteOptions {
  bool raw_narrow_floats = false;
};

/// Errors: npz.npy.header, npz.npy.dtype, npz.npy.size, npz.zip.*, and file.* from opening and
/// writing files.
/// `where` stands for the file in messages.
Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string &where);
/// Arrays by name, in the archive's order; names without the `.npy`. Stored and deflated members,
/// zip64.
Result<std::vector<std::pair<std::string, Tensor>>> parse_npz(std::span<const std::byte> bytes,
                                                              const std::string &where);

/// The bytes of a `.npy` file (version 1.0). Error npz.npy.dtype for types without any counterpart.
Result<std::vector<std::byte>> format_npy(const Tensor &t, const NpyWriteOptions &options = {});

/// By the path's content: a `.npz` archive, or one array from a `.npy` file under the name "".
Result<std::vector<std::pair<std::string, Tensor>>> read_numpy(const std::string &path);
/// Members are stored, with a fixed time stamp: the same tensors give the same bytes. The file
/// appears whole or not at all. Undefined tensors are left out.
Status write_npz(const std::string &path, std::span<const std::pair<std::string, Tensor>> arrays,
                 const NpyWriteOptions &options = {});

} // namespace chute::eval
