#include "backends/cuda/libraries/libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "backends/cuda/libraries/status.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr absl::string_view kWheels = "nvidia-cuda-nvrtc nvidia-cublas nvidia-cusolver nvidia-cufft";

// The file of an open library.
std::string PathOf(void* handle, absl::string_view otherwise) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map->l_name == nullptr || *map->l_name == 0) {
    return std::string(otherwise);
  }
  return map->l_name;
}

std::string ReadFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A folder in which a library was looked for, and why the file that is there cannot be opened; empty if none is there.
struct Place {
  std::string folder;
  std::string fault;
};

// Opens the library in a folder, if it is there. To open anything but a file may wait for ever.
void* OpenIn(const std::string& path, std::string* fault) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return nullptr;
  if (!std::filesystem::is_regular_file(status)) {
    *fault = "it is no file";
    return nullptr;
  }
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) *fault = dlerror();
  return handle;
}

// Returns the places, each with its fault, for a message.
std::string PlacesText(absl::Span<const Place> places) {
  return absl::StrJoin(places, ", ", [](std::string* text, const Place& place) {
    absl::StrAppend(text, place.folder, place.fault.empty() ? "" : absl::StrCat(" (", place.fault, ")"));
  });
}

// Returns those with faults alone, as " (FOLDER: FAULT)"; empty if there are none.
std::string FaultsText(absl::Span<const Place> places) {
  std::vector<std::string> faults;
  for (const Place& place : places) {
    if (!place.fault.empty()) faults.push_back(absl::StrCat(place.folder, ": ", place.fault));
  }
  return faults.empty() ? "" : absl::StrCat(" (", absl::StrJoin(faults, ", "), ")");
}

struct OpenLibrary {
  void* handle = nullptr;  // null if no place has it
  std::string path;
};

// Opens a library in the first place that has it. If none has, `places` are those that were asked, with the loader's
// words on files that are there and cannot be opened.
OpenLibrary OpenFirst(const LibraryPaths& paths, Library library, absl::string_view soname,
                      std::vector<Place>* places) {
  OpenLibrary opened;
  const auto is_in = [&](const std::string& folder) {
    Place place{.folder = folder, .fault = ""};
    opened.path = absl::StrCat(folder, "/", soname);
    opened.handle = OpenIn(opened.path, &place.fault);
    if (opened.handle == nullptr) places->push_back(std::move(place));
    return opened.handle != nullptr;
  };
  for (const std::string& folder : paths.folders) {
    if (is_in(folder)) return opened;
  }
  if (paths.asks_loader) {
    opened.handle = dlopen(std::string(soname).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened.handle != nullptr) {
      opened.path = PathOf(opened.handle, soname);
      return opened;
    }
    places->push_back({.folder = "the loader's paths", .fault = ""});
  }
  if (library == Library::kDriver) return {};  // a toolkit has a stub of it
  for (const std::string& folder : paths.toolkit_folders) {
    if (is_in(folder)) return opened;
  }
  return {};
}

// Tells whether the library is in some place, without keeping it open.
bool IsThere(const LibraryPaths& paths, Library library, absl::string_view soname) {
  std::vector<Place> places;
  const OpenLibrary opened = OpenFirst(paths, library, soname, &places);
  return opened.handle != nullptr && dlclose(opened.handle) == 0;
}

// Fills a table. Returns the first function that the library lacks; null if it has all.
#define TENSORD_CUDA_FIND(name, result, arguments)                             \
  table->name = reinterpret_cast<decltype(table->name)>(dlsym(handle, #name)); \
  if (table->name == nullptr && missing == nullptr) missing = #name;
#define TENSORD_CUDA_FILL(Table, FUNCTIONS)      \
  const char* Fill(void* handle, Table* table) { \
    const char* missing = nullptr;               \
    FUNCTIONS(TENSORD_CUDA_FIND)                 \
    return missing;                              \
  }
TENSORD_CUDA_FILL(Driver, TENSORD_CUDA_DRIVER_FUNCTIONS)
TENSORD_CUDA_FILL(Nvrtc, TENSORD_CUDA_NVRTC_FUNCTIONS)
TENSORD_CUDA_FILL(BlasLt, TENSORD_CUDA_BLAS_LT_FUNCTIONS)
TENSORD_CUDA_FILL(Blas, TENSORD_CUDA_BLAS_FUNCTIONS)
TENSORD_CUDA_FILL(Solver, TENSORD_CUDA_SOLVER_FUNCTIONS)
TENSORD_CUDA_FILL(Fft, TENSORD_CUDA_FFT_FUNCTIONS)

// Adds the functions that a library need not have.
template <typename Table>
void FillLater(void*, Table*) {}
void FillLater(void* handle, Solver* table) {
#define TENSORD_CUDA_FIND_LATER(name, result, arguments) \
  table->name = reinterpret_cast<decltype(table->name)>(dlsym(handle, #name));
  TENSORD_CUDA_SOLVER_LATER_FUNCTIONS(TENSORD_CUDA_FIND_LATER)
#undef TENSORD_CUDA_FIND_LATER
}

// Versions are numbers of decimal digits, in which each library gives the major version another place.
std::string VersionText(long version, long major, long minor) {
  return absl::StrCat(version / major, ".", version % major / minor);
}

std::string VersionOf(const Nvrtc& nvrtc) {
  int major = 0, minor = 0;
  return nvrtc.nvrtcVersion(&major, &minor) == kNvrtcSuccess ? absl::StrCat(major, ".", minor) : "unknown";
}

std::string VersionOf(const BlasLt& blas) {
  return VersionText(static_cast<long>(blas.cublasLtGetVersion()), 10000, 100);
}

std::string VersionOf(const Blas& blas) {
  int major = 0, minor = 0;
  const bool is_known = blas.cublasGetProperty(kCudaMajorVersion, &major) == kBlasSuccess &&
                        blas.cublasGetProperty(kCudaMinorVersion, &minor) == kBlasSuccess;
  return is_known ? absl::StrCat(major, ".", minor) : "unknown";
}

std::string VersionOf(const Solver& solver) {
  int version = 0;
  return solver.cusolverGetVersion(&version) == kSolverSuccess ? VersionText(version, 1000, 100) : "unknown";
}

std::string VersionOf(const Fft& fft) {
  int version = 0;
  return fft.cufftGetVersion(&version) == kFftSuccess ? VersionText(version, 1000, 100) : "unknown";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Libraries>> Libraries::Open(LibraryPaths paths) {
  std::unique_ptr<Libraries> libraries(new Libraries(std::move(paths)));
  RETURN_IF_ERROR(libraries->OpenDriver());
  return libraries;
}

absl::Status Libraries::OpenDriver() {
  const absl::string_view soname = NamesOf(Library::kDriver).front().soname;
  std::vector<Place> places;
  const auto [handle, path] = OpenFirst(paths_, Library::kDriver, soname, &places);
  if (handle == nullptr) {
    return absl::UnavailableError(absl::StrCat(soname, " was not found", FaultsText(places),
                                               "; the driver is installed on the host, a container needs --gpus all"));
  }
  if (const char* missing = Fill(handle, &driver_); missing != nullptr) {
    return absl::UnavailableError(absl::StrCat(path, " has no ", missing, "; install a driver of CUDA 12 or later"));
  }
  int count = 0;
  CuResult result = driver_.cuInit(0);
  if (result == kCuSuccess) result = driver_.cuDeviceGetCount(&count);
  if (result != kCuSuccess || count == 0) {
    return absl::UnavailableError(
        absl::StrCat(path, " finds no device: ", NameOf(driver_, result == kCuSuccess ? kCuNoDevice : result),
                     "; a container needs --gpus all"));
  }
  if (const CuResult failed = driver_.cuDriverGetVersion(&driver_version_); failed != kCuSuccess) {
    return absl::UnavailableError(absl::StrCat(path, " tells no version: ", NameOf(driver_, failed)));
  }
  AddOpened({Library::kDriver, std::string(soname), path, VersionText(driver_version_, 1000, 10)});
  return absl::OkStatus();
}

// "driver 550 (CUDA 12.4)"
std::string Libraries::DriverText() const {
  const std::string release = DriverReleaseIn(ReadFile(paths_.driver_release_file));
  return absl::StrCat(release.empty() ? "the driver" : absl::StrCat("driver ", release.substr(0, release.find('.'))),
                      " (CUDA ", VersionText(driver_version_, 1000, 10), ")");
}

absl::StatusOr<Libraries::Found> Libraries::Find(Library library) {
  std::vector<Place> places;
  absl::string_view wanted;  // the newest that would do, which is not in these places
  for (const LibraryName& name : NamesOf(library)) {
    if (name.cuda_major > driver_major() || (first_.cuda_major != 0 && name.cuda_major != first_.cuda_major)) continue;
    std::vector<Place> asked;
    OpenLibrary opened = OpenFirst(paths_, library, name.soname, &asked);
    if (opened.handle != nullptr) return Found{opened.handle, std::move(opened.path), name};
    if (wanted.empty()) {
      wanted = name.soname;
      places = std::move(asked);
    }
  }
  for (const LibraryName& name : NamesOf(library)) {
    if (!IsThere(paths_, library, name.soname)) continue;
    if (name.cuda_major > driver_major()) {
      return Refuse(Refusal::kUnsupportedOnDevice,
                    absl::StrCat(DriverText(), " is older than ", name.soname, "; install a newer driver, or CUDA ",
                                 driver_major(), "'s libraries"));
    }
    if (first_.cuda_major != 0 && name.cuda_major != first_.cuda_major) {
      return Refuse(Refusal::kUnsupportedOnDevice,
                    absl::StrCat(name.soname, " is of CUDA ", name.cuda_major, ", but ", first_.soname, " is of CUDA ",
                                 first_.cuda_major, "; install all libraries of one version"));
    }
  }
  return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat(wanted.empty() ? NamesOf(library).front().soname : wanted,
                                                            " was not found in: ", PlacesText(places),
                                                            "; set cuda.libraries, or pip install ", kWheels));
}

template <typename Table>
absl::StatusOr<const Table*> Libraries::Use(Library library, Lazy<Table>* lazy) {
  MutexLock lock(&mutex_);
  if (!lazy->is_tried) {
    lazy->is_tried = true;
    const absl::StatusOr<Found> found = Find(library);
    lazy->status = found.status();
    if (found.ok()) {
      const char* const missing = Fill(found->handle, &lazy->table);
      if (missing != nullptr) {
        lazy->status = Refuse(Refusal::kUnsupportedOnDevice,
                              absl::StrCat(found->path, " has no ", missing, "; install the newest libraries of CUDA ",
                                           found->name.cuda_major));
      } else {
        FillLater(found->handle, &lazy->table);
        if (first_.cuda_major == 0) first_ = found->name;
        AddOpened({library, std::string(found->name.soname), found->path, VersionOf(lazy->table)});
      }
    }
  }
  if (!lazy->status.ok()) return lazy->status;
  return &lazy->table;
}

absl::StatusOr<const Nvrtc*> Libraries::nvrtc() { return Use(Library::kNvrtc, &nvrtc_); }
absl::StatusOr<const BlasLt*> Libraries::blas_lt() { return Use(Library::kBlasLt, &blas_lt_); }
absl::StatusOr<const Blas*> Libraries::blas() { return Use(Library::kBlas, &blas_); }
absl::StatusOr<const Solver*> Libraries::solver() { return Use(Library::kSolver, &solver_); }
absl::StatusOr<const Fft*> Libraries::fft() { return Use(Library::kFft, &fft_); }

std::vector<absl::Status> Libraries::OpenAll() {
  std::vector<absl::Status> refusals;
  for (const absl::Status& opened :
       {nvrtc().status(), blas_lt().status(), blas().status(), solver().status(), fft().status()}) {
    if (!opened.ok()) refusals.push_back(opened);
  }
  return refusals;
}

void Libraries::AddOpened(LibraryInfo library) {
  MutexLock lock(&opened_mutex_);
  opened_.push_back(std::move(library));
}

std::vector<LibraryInfo> Libraries::opened() const {
  MutexLock lock(&opened_mutex_);
  return opened_;
}

}  // namespace tensord::cuda
