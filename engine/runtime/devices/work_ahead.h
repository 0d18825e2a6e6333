#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_WORK_AHEAD_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_WORK_AHEAD_H_

#include <cstddef>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace tensord {

// The work that starts before a run does. A part of it may still go on then: one piece on each other worker.
class WorkAhead {
 public:
  explicit WorkAhead(size_t workers) : kept_(workers - 1) {}

  void AddWork(absl::Duration work) { work_ += work; }
  // Adds the longest piece that one run can be of it. False: it does not matter, nor would a smaller one.
  bool AddPiece(absl::Duration piece);

  bool IsNone() const { return work_ <= absl::ZeroDuration(); }
  // Returns the least time until a worker is free for the run. `rests`: the remaining times of the workers' runs, the
  // shortest first.
  absl::Duration LeastWait(absl::Span<const absl::Duration> rests) const;

 private:
  const size_t kept_;
  absl::Duration work_;
  std::vector<absl::Duration> pieces_;  // the largest first, as many as there are other workers
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_WORK_AHEAD_H_
