#ifndef TENSORD_SERVER_PROFILING_STACK_SAMPLER_H_
#define TENSORD_SERVER_PROFILING_STACK_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"

namespace tensord::server {

// Samples the stacks of the process's threads, each time it has used a certain time of its processors: the kernel then
// interrupts a running thread with SIGPROF, and its stack is noted. One at a time in a process; it samples from Start
// to Stop. Afterwards only a handler is left that finds nothing to do.
//
// Memory is taken before it begins; the handler takes no lock and calls nothing that might.
class StackSampler {
 public:
  static constexpr size_t kMaxDepth = 128;
  // The room for program counters of all stacks together.
  static constexpr size_t kRoom = size_t{1} << 21;

  struct Stacks {
    // For each stack its number of program counters, then these, the innermost first. All but the innermost are return
    // addresses.
    std::vector<uintptr_t> words;
    int64_t count = 0;
    int64_t dropped = 0;  // for want of room
  };

  // Returns null if another samples. `per_second` of processor time.
  static std::unique_ptr<StackSampler> Start(int per_second, size_t room = kRoom);
  ~StackSampler();
  StackSampler(const StackSampler&) = delete;
  StackSampler& operator=(const StackSampler&) = delete;

  // Once.
  Stacks Stop();

 private:
  explicit StackSampler(size_t room) : words_(room) {}
  void Disarm();

  std::vector<uintptr_t> words_;
  bool is_armed_ = true;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_PROFILING_STACK_SAMPLER_H_
