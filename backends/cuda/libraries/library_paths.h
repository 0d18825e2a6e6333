#ifndef TENSORD_BACKENDS_CUDA_LIBRARIES_LIBRARY_PATHS_H_
#define TENSORD_BACKENDS_CUDA_LIBRARIES_LIBRARY_PATHS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tensord::cuda {

enum class Library { kDriver, kNvrtc, kBlasLt, kBlas, kSolver, kFft };

// A library's file name, and the major version of CUDA that it is of: 0 for the driver, which is of any.
struct LibraryName {
  absl::string_view soname;
  int cuda_major;
};

// Returns the names under which a library may be there, the newest first.
absl::Span<const LibraryName> NamesOf(Library library);

// The places where NVIDIA's libraries are looked for.
struct LibraryPaths {
  // Folders of the setting cuda.libraries, which come first.
  std::vector<std::string> folders;
  // The dynamic loader's own: LD_LIBRARY_PATH, ldconfig's cache, a container's mounts.
  bool asks_loader = true;
  // The toolkit's, which come last. The driver is not looked for there: a toolkit has a stub of it.
  std::vector<std::string> toolkit_folders = {"/usr/local/cuda/lib64"};
  // The file in which the driver tells its release.
  std::string driver_release_file = "/proc/driver/nvidia/version";
};

// Returns the usual places with those of a setting first: the folder itself and, if it is a folder of Python packages,
// those of NVIDIA's wheels in it (nvidia/cu13/lib, nvidia/*/lib). Nothing for an empty setting.
LibraryPaths PathsOf(absl::string_view setting);

// Returns the release of the driver's kernel module, "580.159.03", from the text of /proc/driver/nvidia/version; empty
// if there is none in it.
std::string DriverReleaseIn(absl::string_view text);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LIBRARIES_LIBRARY_PATHS_H_
