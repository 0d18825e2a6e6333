#ifndef TENSORD_ENGINE_RUNTIME_COMPILE_COMPILE_WATCH_H_
#define TENSORD_ENGINE_RUNTIME_COMPILE_COMPILE_WATCH_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tensord {

enum class CompilePhase : uint8_t {
#define TENSORD_COMPILE_PHASE(member, name, help) member,
#include "engine/runtime/compile/compile_phases.def"
#undef TENSORD_COMPILE_PHASE
};

inline constexpr absl::string_view kCompilePhaseNames[] = {
#define TENSORD_COMPILE_PHASE(member, name, help) name,
#include "engine/runtime/compile/compile_phases.def"
#undef TENSORD_COMPILE_PHASE
};

inline constexpr size_t kNumCompilePhases = sizeof(kCompilePhaseNames) / sizeof(kCompilePhaseNames[0]);

// Gets the time of each phase of a compilation, on the thread that compiles; thread-safe, and may be null. Kept by
// programs that are compiled again for the sizes of arguments.
using CompileWatch = std::function<void(CompilePhase phase, absl::Duration time)>;

// Tells a watch of the phases of one compilation as they end. Confined to its thread; the watch must outlive it.
class PhaseClock {
 public:
  explicit PhaseClock(const CompileWatch& watch) : watch_(watch), start_(Clock::now()), last_(start_) {}

  // All since the one before ended was this phase's.
  void End(CompilePhase phase) {
    const Clock::time_point now = Clock::now();
    if (watch_) watch_(phase, absl::FromChrono(now - std::exchange(last_, now)));
  }
  // All since the beginning was `whole`'s.
  void EndAll(CompilePhase whole) const {
    if (watch_) watch_(whole, absl::FromChrono(last_ - start_));
  }

 private:
  using Clock = std::chrono::steady_clock;

  const CompileWatch& watch_;
  const Clock::time_point start_;
  Clock::time_point last_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_COMPILE_COMPILE_WATCH_H_
