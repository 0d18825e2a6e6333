// NumPy's files: .npy holds one dense tensor, .npz several with names.
#ifndef TENSORD_NPY_H_
#define TENSORD_NPY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensord/host_tensor.h"

namespace tensord::client {

// Returns a file's contents as a tensor: format versions 1 to 3, either order, little-endian |b1, <i4, <i8, <f2, <f4,
// <f8, <c8 and <c16. "<V2" is read as BF16, for which NumPy has no name; so are files of `ml_dtypes`. INVALID_ARGUMENT
// names the fault of any other bytes. The payload is not copied.
absl::StatusOr<HostTensor> ParseNpy(std::string contents);

// Returns the tensor as a file of version 1, in the tensor's own order. BF16 becomes "<V2": read it in NumPy with
// .view(ml_dtypes.bfloat16).
std::string FormatNpy(const HostTensor& tensor);

// The same from and to the file system; NOT_FOUND, PERMISSION_DENIED and the like name the file.
absl::StatusOr<HostTensor> ReadNpy(const std::string& path);
absl::Status WriteNpy(const std::string& path, const HostTensor& tensor);

struct NamedTensor {
  std::string name = {};
  HostTensor tensor = {};
};

// Reads NumPy's .npz: a ZIP archive of .npy files, in their order, without ".npy" in the names. Takes archives of
// numpy.savez, past 4 GiB too; those of savez_compressed are refused with UNIMPLEMENTED. INVALID_ARGUMENT names the
// fault of any other file; DATA_LOSS if a checksum does not match. Allocates no more than the file has bytes.
absl::StatusOr<std::vector<NamedTensor>> ReadNpz(const std::string& path);

// Replaces a file by an archive that numpy.load reads, without a copy of the tensors. INVALID_ARGUMENT for a name that
// is empty, occurs twice, or is longer than an archive takes.
absl::Status WriteNpz(const std::string& path, absl::Span<const NamedTensor> tensors);

}  // namespace tensord::client

#endif  // TENSORD_NPY_H_
