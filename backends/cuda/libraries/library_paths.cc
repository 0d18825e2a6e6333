#include "backends/cuda/libraries/library_paths.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tensord::cuda {
namespace {

constexpr LibraryName kDriverNames[] = {{"libcuda.so.1", 0}};
constexpr LibraryName kNvrtcNames[] = {{"libnvrtc.so.13", 13}, {"libnvrtc.so.12", 12}};
constexpr LibraryName kBlasLtNames[] = {{"libcublasLt.so.13", 13}, {"libcublasLt.so.12", 12}};
constexpr LibraryName kBlasNames[] = {{"libcublas.so.13", 13}, {"libcublas.so.12", 12}};
constexpr LibraryName kSolverNames[] = {{"libcusolver.so.12", 13}, {"libcusolver.so.11", 12}};
constexpr LibraryName kFftNames[] = {{"libcufft.so.12", 13}, {"libcufft.so.11", 12}};

// Folders nvidia/…/lib of Python packages: that of all libraries of CUDA 13 first, then those of single ones by name.
std::vector<std::string> WheelFolders(const std::string& packages) {
  const std::filesystem::path nvidia = std::filesystem::path(packages) / "nvidia";
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(nvidia, error), end; !error && it != end; it.increment(error)) {
    std::error_code none;
    const std::filesystem::path lib = it->path() / "lib";
    if (std::filesystem::is_directory(lib, none)) found.push_back(lib.string());
  }
  std::sort(found.begin(), found.end());
  std::stable_partition(found.begin(), found.end(),
                        [](const std::string& folder) { return absl::EndsWith(folder, "/nvidia/cu13/lib"); });
  return found;
}

}  // namespace

absl::Span<const LibraryName> NamesOf(Library library) {
  switch (library) {
    case Library::kDriver:
      return kDriverNames;
    case Library::kNvrtc:
      return kNvrtcNames;
    case Library::kBlasLt:
      return kBlasLtNames;
    case Library::kBlas:
      return kBlasNames;
    case Library::kSolver:
      return kSolverNames;
    case Library::kFft:
      return kFftNames;
  }
  return {};
}

LibraryPaths PathsOf(absl::string_view setting) {
  LibraryPaths paths;
  if (setting.empty()) return paths;
  const std::string folder(setting);
  paths.folders.push_back(folder);
  for (std::string& wheel : WheelFolders(folder)) paths.folders.push_back(std::move(wheel));
  return paths;
}

std::string DriverReleaseIn(absl::string_view text) {
  for (absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t\n"), absl::SkipEmpty())) {
    const bool is_release = absl::ascii_isdigit(static_cast<unsigned char>(word.front())) &&
                            absl::StrContains(word, '.') &&
                            word.find_first_not_of("0123456789.") == absl::string_view::npos;
    if (is_release) return std::string(word);
  }
  return "";
}

}  // namespace tensord::cuda
