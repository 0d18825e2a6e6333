#include "tests/testlib/tls/private_folder.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace tensord {
namespace {

void Require(bool holds, const std::string& path) {
  if (holds) return;
  std::fprintf(stderr, "cannot write %s\n", path.c_str());
  std::abort();
}

}  // namespace

PrivateFolder::PrivateFolder() {
  char path[] = "/tmp/tensord-private.XXXXXX";
  Require(mkdtemp(path) != nullptr, path);
  path_ = path;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string PrivateFolder::PathOf(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

std::string PrivateFolder::Write(absl::string_view name, absl::string_view content, mode_t mode) const {
  std::string path = PathOf(name);
  const std::string next = absl::StrCat(path, ".next");
  {
    std::ofstream file(next, std::ios::binary);
    file << content;
    file.close();
    Require(file.good(), next);
  }
  Require(chmod(next.c_str(), mode) == 0 && rename(next.c_str(), path.c_str()) == 0, path);
  return path;
}

}  // namespace tensord
