#ifndef TENSORD_BACKENDS_CUDA_LIBRARIES_LIBRARY_BUILD_H_
#define TENSORD_BACKENDS_CUDA_LIBRARIES_LIBRARY_BUILD_H_

#include <string>

namespace tensord::cuda {

// Returns words by which a library's file is told from those of other builds, which may say of themselves that they are
// of the same version: its bytes, and when they were written. `function` is one of the library's. Empty if nobody
// knows.
std::string LibraryBuild(const void* function);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LIBRARIES_LIBRARY_BUILD_H_
