#ifndef TENSORD_BACKENDS_CPU_JOINS_JOIN_H_
#define TENSORD_BACKENDS_CPU_JOINS_JOIN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cpu {

// Segments that follow each other and run as one kernel.
//
// Immutable after construction, so thread-safe. Run does not allocate, but for kernels of very many operands, and
// cannot fail. Same bits for any number of threads.
class Join {
 public:
  virtual ~Join() = default;

  virtual size_t num_segments() const = 0;
  // Slots that need no memory.
  virtual std::vector<Slot> passing() const = 0;
  virtual int64_t scratch_bytes() const = 0;
  virtual int64_t workspace_bytes() const = 0;
  virtual std::string Describe(size_t segment) const = 0;

  // `times` is empty, or has an entry a segment: the time of all, split between them.
  virtual void Run(absl::Span<void* const> slots, void* scratch, void* workspace, ThreadPool& pool,
                   absl::Span<SegmentTime> times) const = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_JOIN_H_
