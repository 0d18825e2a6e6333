#ifndef TENSORD_BACKENDS_CPU_JOINS_JOIN_H_
#define TENSORD_BACKENDS_CPU_JOINS_JOIN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cpu {

// The arguments of a join's run.
struct JoinRun {
  absl::Span<void* const> slots;
  void* scratch = nullptr;    // of this join alone; null where it asked for none
  void* workspace = nullptr;  // of the session; null where no join asked for any
  ThreadPool& pool;
  absl::Span<SegmentTime> times;  // empty, or an entry a segment: the time of all, split between them

  void* At(Slot slot) const { return slots[static_cast<size_t>(slot)]; }
};

// Segments that follow each other and run as one; a segment by itself is a join of one.
//
// Immutable after construction, so thread-safe. Run does not allocate, but for kernels of very many operands. Same bits
// for any number of threads.
class Join {
 public:
  virtual ~Join() = default;

  virtual size_t num_segments() const = 0;
  // Slots that need no memory.
  virtual std::vector<Slot> passing() const = 0;
  virtual int64_t scratch_bytes() const = 0;
  virtual int64_t workspace_bytes() const = 0;
  virtual std::string Describe(size_t segment) const = 0;

  // Fails only where a kernel of an extension does.
  virtual absl::Status Run(const JoinRun& run) const = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_JOIN_H_
