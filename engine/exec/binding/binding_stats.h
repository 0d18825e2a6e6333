#ifndef TENSORD_ENGINE_EXEC_BINDING_BINDING_STATS_H_
#define TENSORD_ENGINE_EXEC_BINDING_BINDING_STATS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "absl/strings/string_view.h"

namespace tensord {

// The products of a program for one set of sizes.
enum class SizedKind : uint8_t {
  kBinding,  // memory is planned and kernels are made
  kStage,    // the same, of a part of a program some of whose sizes the run decides
  kProgram,  // it is compiled anew
};
inline constexpr absl::string_view kSizedKindNames[] = {"binding", "stage", "program"};
inline constexpr size_t kNumSizedKinds = std::size(kSizedKindNames);

// The counts of all programs' caches. Thread-safe.
class BindingStats {
 public:
  enum Event : uint8_t {
    kFound,
    kMade,
    kJoined,  // somebody else was making it
    kRefused,
    kEvicted,
  };
  static constexpr size_t kNumEvents = 5;
  struct Counts {
    std::array<int64_t, kNumEvents> events{};
    int64_t entries = 0;
    int64_t bytes = 0;
  };

  void Count(SizedKind kind, Event event) { Of(kind).events[event].fetch_add(1, std::memory_order_relaxed); }
  void AddKept(SizedKind kind, int64_t entries, int64_t bytes) {
    Of(kind).entries.fetch_add(entries, std::memory_order_relaxed);
    Of(kind).bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  // Returns the bytes of all kinds.
  int64_t kept_bytes() const {
    int64_t bytes = 0;
    for (const Counters& counters : counters_) bytes += counters.bytes.load(std::memory_order_relaxed);
    return bytes;
  }
  Counts counts(SizedKind kind) const {
    const Counters& counters = counters_[static_cast<size_t>(kind)];
    Counts counts;
    for (size_t i = 0; i < kNumEvents; ++i) counts.events[i] = counters.events[i].load(std::memory_order_relaxed);
    counts.entries = counters.entries.load(std::memory_order_relaxed);
    counts.bytes = counters.bytes.load(std::memory_order_relaxed);
    return counts;
  }

 private:
  struct alignas(64) Counters {  // executors count at once
    std::array<std::atomic<int64_t>, kNumEvents> events{};
    std::atomic<int64_t> entries{0};
    std::atomic<int64_t> bytes{0};
  };

  Counters& Of(SizedKind kind) { return counters_[static_cast<size_t>(kind)]; }

  std::array<Counters, kNumSizedKinds> counters_{};
};

// The bounds of each cache of a program, which keeps the last used bindings, and of everything bound.
struct BindingOptions {
  int64_t most_operations = std::numeric_limits<int64_t>::max();  // of a run, as run_operations.h counts them
  int64_t max_sets = 16;
  int64_t max_bytes = std::numeric_limits<int64_t>::max();  // of all together; the one used last stays in any case
  std::shared_ptr<BindingStats> stats;                      // null: nobody counts
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_BINDING_STATS_H_
