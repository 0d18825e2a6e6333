// NumPy's .npy files: one dense tensor each.
#ifndef TENSORD_NPY_H_
#define TENSORD_NPY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensord/host_tensor.h"

namespace tensord::client {

// Returns a file's contents as a tensor: format versions 1 to 3, either order, little-endian |b1, <i4, <i8, <f2, <f4,
// <f8, <c8 and <c16. "<V2" is read as BF16, for which NumPy has no name; so are files of `ml_dtypes`. INVALID_ARGUMENT
// names the fault of any other bytes. The payload is not copied.
absl::StatusOr<HostTensor> ParseNpy(std::string contents);

// Returns the tensor as a file of version 1 (2 where the header is long), in the tensor's own order. BF16 becomes
// "<V2": read it in NumPy with .view(ml_dtypes.bfloat16).
std::string FormatNpy(const HostTensor& tensor);

// The same from and to the file system; NOT_FOUND, PERMISSION_DENIED and the like name the file.
absl::StatusOr<HostTensor> ReadNpy(const std::string& path);
absl::Status WriteNpy(const std::string& path, const HostTensor& tensor);

}  // namespace tensord::client

#endif  // TENSORD_NPY_H_
