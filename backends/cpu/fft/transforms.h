#ifndef TENSORD_BACKENDS_CPU_FFT_TRANSFORMS_H_
#define TENSORD_BACKENDS_CPU_FFT_TRANSFORMS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "backends/cpu/fft/lanes/lanes.h"
#include "engine/base/mutex.h"

namespace tensord::cpu {

// Returns the best lanes of this processor within the targets that Highway allows.
const FftLanes& BestFftLanes();

// Tables of transforms, shared by the kernels that use them, and kept for the next ones up to a number of bytes: the
// least recently used go first, and live on in the kernels that use them. Thread-safe.
class FftTransforms {
 public:
  // The default of cpu.fft_table_bytes: four tables for a million numbers in C128.
  static constexpr int64_t kDefaultLimitBytes = int64_t{64} << 20;

  explicit FftTransforms(int64_t limit_bytes = kDefaultLimitBytes) : limit_bytes_(limit_bytes) {}

  std::shared_ptr<const FftLaneTransform> Lanes(bool is_double, FftForm form, int64_t length);
  std::shared_ptr<const FftSplitTransform> Split(bool is_double, int64_t n1, int64_t n2);
  // Any other immutable table, under a name of its own.
  template <typename Table>
  std::shared_ptr<const Table> Get(const std::string& name, absl::FunctionRef<std::shared_ptr<const Table>()> make) {
    return std::static_pointer_cast<const Table>(Find(name, [&make]() -> Made {
      std::shared_ptr<const Table> table = make();
      const int64_t bytes = table->table_bytes();
      return {std::move(table), bytes};
    }));
  }

  struct Stats {
    int64_t tables = 0;
    int64_t bytes = 0;
    int64_t hits = 0;
    int64_t misses = 0;
    int64_t evictions = 0;
  };
  Stats stats() const;

 private:
  struct Made {
    std::shared_ptr<const void> table;
    int64_t bytes = 0;
  };
  struct Entry {
    Made made;
    uint64_t last_use = 0;
  };

  std::shared_ptr<const void> Find(const std::string& name, absl::FunctionRef<Made()> make);
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t limit_bytes_;
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FFT_TRANSFORMS_H_
