#ifndef TENSORD_BACKENDS_CUDA_COMPILE_CUBIN_STORE_H_
#define TENSORD_BACKENDS_CUDA_COMPILE_CUBIN_STORE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/base/entry_folder.h"
#include "engine/base/fingerprint.h"
#include "engine/base/mutex.h"

namespace tensord::cuda {

// Machine code of kernels, by the text that it was compiled from: in memory, and in a folder, where the next process
// finds it. Both are bounded in bytes, and the least recently used goes first. An entry on disk is used only if its
// bytes are those that were written; any other is removed, and compiled again. No fault of the disk fails a kernel.
// Several servers may share a folder, also with a ProgramStore. Thread-safe.
//
// An entry on disk: "tensord cubin 1\n", the SHA-256 of the code in hexadecimal digits, "\n", the code.
class CubinStore {
 public:
  using Image = std::shared_ptr<const std::string>;

  // All that decides what the compiler gives.
  struct Source {
    absl::string_view text;
    absl::Span<const absl::string_view> options;
    absl::string_view compiler;      // with its version
    absl::string_view architecture;  // "sm_90"
  };
  struct Options {
    std::string folder = {};  // empty: none
    int64_t memory_bytes = int64_t{64} << 20;
    int64_t disk_bytes = int64_t{256} << 20;
  };
  struct Stats {
    int64_t from_memory = 0;
    int64_t from_disk = 0;
    int64_t compiled = 0;
    int64_t refused = 0;  // by the compiler
    int64_t damaged = 0;  // entries that were removed
    int64_t write_errors = 0;
    absl::Duration compiling;  // the time that it took, also where it failed; all threads' together
    int64_t memory_bytes = 0;  // of machine code that is kept, now
    int64_t disk_bytes = 0;    // likewise, as far as this process knows
  };

  // Makes the folder if it is missing, closes it to others, and removes files that killed servers left unfinished.
  // UNAVAILABLE, with the folder, if it cannot be used.
  static absl::StatusOr<std::unique_ptr<CubinStore>> Open(Options options);
  // Returns a store without a folder.
  static std::unique_ptr<CubinStore> InMemory() { return std::unique_ptr<CubinStore>(new CubinStore({}, nullptr)); }

  // Returns the code of a kernel, and has it compiled if the store has none: once, however many ask at a time. Fails as
  // `compile` does. Who waits for another's compilation leaves as CheckStopped says; who compiles cannot, since nothing
  // interrupts NVRTC.
  absl::StatusOr<Image> Get(const Source& source, absl::FunctionRef<absl::StatusOr<std::string>()> compile);

  // Gives up a kernel's code, which the driver refuses, in memory and on disk.
  void Forget(const Source& source);

  // Returns the folder's permissions before Open closed it to others; 0 if they were closed.
  mode_t opened_with() const { return folder_ == nullptr ? 0 : folder_->opened_with(); }
  Stats stats() const;

  static Fingerprint KeyOf(const Source& source);

 private:
  struct Kept {
    Fingerprint key;
    Image image;
  };
  using List = std::list<Kept>;

  CubinStore(Options options, std::unique_ptr<EntryFolder> folder)
      : options_(std::move(options)), folder_(std::move(folder)) {}
  Image FindLocked(const Fingerprint& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepLocked(const Fingerprint& key, Image image) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Image> Make(const Fingerprint& key, absl::FunctionRef<absl::StatusOr<std::string>()> compile);
  // Returns null if there is no entry that can be used.
  Image Read(const Fingerprint& key);
  void Write(const Fingerprint& key, const std::string& image);

  const Options options_;
  const std::unique_ptr<EntryFolder> folder_;  // null: none
  mutable Mutex mutex_;
  CondVar made_;
  List kept_ ABSL_GUARDED_BY(mutex_);  // the last used first
  absl::flat_hash_map<Fingerprint, List::iterator> places_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Fingerprint> making_ ABSL_GUARDED_BY(mutex_);
  int64_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t disk_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // as far as this process knows
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_COMPILE_CUBIN_STORE_H_
