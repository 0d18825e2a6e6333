#ifndef TENSORD_BACKENDS_CUDA_LIBRARIES_LIBRARIES_H_
#define TENSORD_BACKENDS_CUDA_LIBRARIES_LIBRARIES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/cuda/abi/blas.h"
#include "backends/cuda/abi/blas_lt.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/abi/fft.h"
#include "backends/cuda/abi/nvrtc.h"
#include "backends/cuda/abi/solver.h"
#include "backends/cuda/libraries/library_paths.h"
#include "engine/base/mutex.h"

namespace tensord::cuda {

// Tables of pointers to NVIDIA's functions, by their own names.
#define TENSORD_CUDA_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
struct Driver {
  TENSORD_CUDA_DRIVER_FUNCTIONS(TENSORD_CUDA_MEMBER)
};
struct Nvrtc {
  TENSORD_CUDA_NVRTC_FUNCTIONS(TENSORD_CUDA_MEMBER)
};
struct BlasLt {
  TENSORD_CUDA_BLAS_LT_FUNCTIONS(TENSORD_CUDA_MEMBER)
};
struct Blas {
  TENSORD_CUDA_BLAS_FUNCTIONS(TENSORD_CUDA_MEMBER)
};
struct Solver {
  TENSORD_CUDA_SOLVER_FUNCTIONS(TENSORD_CUDA_MEMBER)
  TENSORD_CUDA_SOLVER_LATER_FUNCTIONS(TENSORD_CUDA_MEMBER)  // null where the library lacks them
};
struct Fft {
  TENSORD_CUDA_FFT_FUNCTIONS(TENSORD_CUDA_MEMBER)
};
#undef TENSORD_CUDA_MEMBER

// A library that is open, for people.
struct LibraryInfo {
  Library library;
  std::string name;     // libnvrtc.so.13
  std::string path;     // of the file
  std::string version;  // 13.0
};

// NVIDIA's libraries, opened where the machine has them, and never closed: threads of theirs may run as long as the
// process does. The driver is open from the start, the others are from their first use on. All of them are of one major
// version of CUDA, which is the driver's or an older one. Thread-safe.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<Libraries> libraries, Libraries::Open(PathsOf(setting)));
//   ASSIGN_OR_RETURN(const Nvrtc* nvrtc, libraries->nvrtc());
class Libraries {
 public:
  // Opens the driver. UNAVAILABLE says which file is missing and how it gets there, or that there is no device.
  static absl::StatusOr<std::unique_ptr<Libraries>> Open(LibraryPaths paths);

  const Driver& driver() const { return driver_; }
  // The major version of CUDA that the driver knows, 13 for example.
  int driver_major() const { return driver_version_ / 1000; }

  // Open the library at the first call. UNSUPPORTED_ON_DEVICE names the library and the places where it was looked for,
  // or the two versions that do not go together; it is the same at each call.
  absl::StatusOr<const Nvrtc*> nvrtc();
  absl::StatusOr<const BlasLt*> blas_lt();
  absl::StatusOr<const Blas*> blas();
  absl::StatusOr<const Solver*> solver();
  absl::StatusOr<const Fft*> fft();

  // Opens all of them. Returns the refusals of those that cannot be opened.
  std::vector<absl::Status> OpenAll();

  // Returns those that are open, in the order in which they were opened. Never waits for one that is being opened.
  std::vector<LibraryInfo> opened() const;

 private:
  // A table, once it was tried to fill it.
  template <typename Table>
  struct Lazy {
    bool is_tried = false;
    absl::Status status;
    Table table;
  };
  struct Found {
    void* handle = nullptr;
    std::string path;
    LibraryName name;
  };

  explicit Libraries(LibraryPaths paths) : paths_(std::move(paths)) {}
  absl::Status OpenDriver();
  absl::StatusOr<Found> Find(Library library) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string DriverText() const;
  template <typename Table>
  absl::StatusOr<const Table*> Use(Library library, Lazy<Table>* lazy);
  void AddOpened(LibraryInfo library);

  const LibraryPaths paths_;
  Driver driver_;
  int driver_version_ = 0;
  Mutex mutex_;
  // The first library that was opened after the driver decides the version of the others.
  LibraryName first_ ABSL_GUARDED_BY(mutex_) = {"", 0};
  Lazy<Nvrtc> nvrtc_ ABSL_GUARDED_BY(mutex_);
  Lazy<BlasLt> blas_lt_ ABSL_GUARDED_BY(mutex_);
  Lazy<Blas> blas_ ABSL_GUARDED_BY(mutex_);
  Lazy<Solver> solver_ ABSL_GUARDED_BY(mutex_);
  Lazy<Fft> fft_ ABSL_GUARDED_BY(mutex_);
  mutable Mutex opened_mutex_;
  std::vector<LibraryInfo> opened_ ABSL_GUARDED_BY(opened_mutex_);
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LIBRARIES_LIBRARIES_H_
