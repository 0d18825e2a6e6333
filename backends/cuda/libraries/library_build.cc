#include "backends/cuda/libraries/library_build.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"

namespace tensord::cuda {

std::string LibraryBuild(const void* function) {
  Dl_info library = {};
  struct stat file = {};
  if (dladdr(function, &library) == 0 || stat(library.dli_fname, &file) != 0) return "";
  return absl::StrCat(file.st_size, " bytes of ", file.st_mtim.tv_sec);
}

}  // namespace tensord::cuda
