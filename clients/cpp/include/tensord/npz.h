#ifndef TENSORD_NPZ_H_
#define TENSORD_NPZ_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensord/host_tensor.h"

namespace tensord::client {

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

#endif  // TENSORD_NPZ_H_
