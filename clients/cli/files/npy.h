// NumPy's .npy files: one dense tensor each.
#ifndef TENSORD_CLIENTS_CLI_FILES_NPY_H_
#define TENSORD_CLIENTS_CLI_FILES_NPY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensord/host_tensor.h"

namespace tensord::cli {

// Returns a file's contents as a tensor: format versions 1 to 3, either order, little-endian |b1, <i4, <i8, <f2, <f4,
// <f8, <c8 and <c16. "<V2" is read as BF16, for which NumPy has no name; so are files of `ml_dtypes`. INVALID_ARGUMENT
// names the fault of any other bytes. The payload is not copied.
absl::StatusOr<client::HostTensor> ParseNpy(std::string contents);

// Returns the tensor as a file of version 1 (2 where the header is long), in the tensor's own order. BF16 becomes
// "<V2": read it in NumPy with .view(ml_dtypes.bfloat16).
std::string FormatNpy(const client::HostTensor& tensor);

// The same from and to the file system; NOT_FOUND, PERMISSION_DENIED and the like name the file.
absl::StatusOr<client::HostTensor> ReadNpy(const std::string& path);
absl::Status WriteNpy(const std::string& path, const client::HostTensor& tensor);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_FILES_NPY_H_
