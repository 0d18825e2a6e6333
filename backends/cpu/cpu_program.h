#ifndef TENSORD_BACKENDS_CPU_CPU_PROGRAM_H_
#define TENSORD_BACKENDS_CPU_CPU_PROGRAM_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/joins/join.h"
#include "backends/cpu/joins/ways.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/memory/host_buffer_pool.h"

namespace tensord::cpu {

// The joins of a session, one after the other.
class CpuProgram final : public PreparedSession {
 public:
  struct Step {
    std::unique_ptr<const Join> join;
    size_t way = 0;       // by which it was made
    size_t begin = 0;     // its first segment
    bool checks = false;  // ask before it whether the run is still wanted
  };

  // `left_out`: ways that were not tried.
  explicit CpuProgram(JoinWaySet left_out) : left_out_(left_out) {}

  // Appends the join of the first of these segments.
  void Append(Joiner::Joined joined, absl::Span<const SegmentInstruction> segments);

  const std::vector<Step>& steps() const { return steps_; }
  int64_t scratch_bytes(size_t position) const override;
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  absl::Span<const SegmentChain> chains() const override { return chains_; }
  std::string DescribeKernel(size_t position) const override;
  std::vector<JoinCount> joins() const override;

 private:
  // A check costs a look at the clock: far less than this takes to read, far more than a tiny kernel.
  static constexpr int64_t kBytesBetweenChecks = 64 << 10;

  const Step& StepOf(size_t position) const;

  const JoinWaySet left_out_;
  std::vector<Step> steps_;
  std::vector<SegmentChain> chains_;
  int64_t unchecked_bytes_ = 0;
  int64_t workspace_bytes_ = 0;
};

// Runs the steps of a program.
class CpuSession final : public BackendSession {
 public:
  // Borrows pool and memory. Each thread of a run asks whether it is still wanted every so often.
  CpuSession(ThreadPool* pool, HostBufferPool* memory, std::chrono::nanoseconds ask_every)
      : pool_(*pool), memory_(*memory), ask_every_(ask_every) {}

  absl::Status Run(const PreparedSession& prepared, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                   absl::Span<SegmentTime> times) override;
  absl::Status Finish() override;

 private:
  ThreadPool& pool_;
  HostBufferPool& memory_;
  const std::chrono::nanoseconds ask_every_;
  std::shared_ptr<Buffer> workspace_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CPU_PROGRAM_H_
