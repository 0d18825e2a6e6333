#ifndef TENSORD_CLIENTS_CPP_FILES_NPY_HEADER_H_
#define TENSORD_CLIENTS_CPP_FILES_NPY_HEADER_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensord/host_tensor.h"
#include "tensord/shape.h"

namespace tensord::client {

// The head of a .npy file before the payload: a magic number, and a Python dictionary of three entries.
struct NpyHeader {
  std::string descriptor;  // for example "<f4"
  bool is_fortran_order = false;
  Shape shape;
  size_t size_bytes = 0;  // where the payload begins
};

// Bytes that tell how long the header is, in every version.
inline constexpr size_t kNpyPrefixBytes = 12;

// Returns the bytes before the payload, by the file's first kNpyPrefixBytes or, where it is shorter, all of it.
// INVALID_ARGUMENT if it is no .npy file of version 1 to 3, or its header has more than kMostNpyHeaderBytes.
absl::StatusOr<size_t> NpyHeaderBytes(absl::string_view prefix);
inline constexpr size_t kMostNpyHeaderBytes = size_t{1} << 20;

// Parses the head. INVALID_ARGUMENT if the bytes begin with no header of version 1 to 3, or it is malformed: a key that
// is missing, unknown or twice, a dimension that is negative or does not fit into int64, anything after the dictionary.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view file);

// Returns the head of a tensor's file, padded so that a mapped file has aligned elements.
std::string FormatNpyHeader(const HostTensor& tensor);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_FILES_NPY_HEADER_H_
