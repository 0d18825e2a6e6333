#ifndef TENSORD_ENGINE_BASE_PROGRAM_AT_WORK_H_
#define TENSORD_ENGINE_BASE_PROGRAM_AT_WORK_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/base/fingerprint.h"

namespace tensord {

// The kind of work on a program.
enum class ProgramWork : uint8_t {
  kCompile,  // binding to sizes included
  kRun,
  kRestore,  // from the disk
};
inline constexpr size_t kNumProgramWorks = 3;
// "compile", "run", "restore".
absl::string_view Name(ProgramWork work);

// The place where one thread writes down its program. In static memory, and read by signal handlers while it changes.
struct alignas(64) WorkPlace {
  std::atomic<uint64_t> changes{0};  // odd while a program is written down
  std::array<std::atomic<uint64_t>, Fingerprint::kBytes / sizeof(uint64_t)> fingerprint{};
  std::atomic<uint8_t> work{0};  // 1 + the ProgramWork; 0: nothing
  std::atomic<bool> taken{false};
};

// Lets its thread work for that program while it lives: should the process crash meanwhile, the handler of the signal
// (ProgramsAtWork) knows for whom. Costs some stores into memory of the thread's own, and for the first of a thread a
// stack for its signal handlers. Within another of the same thread it does nothing. Confined to its thread.
class ProgramAtWork {
 public:
  ProgramAtWork(const Fingerprint& fingerprint, ProgramWork work);
  ~ProgramAtWork();
  ProgramAtWork(const ProgramAtWork&) = delete;
  ProgramAtWork& operator=(const ProgramAtWork&) = delete;

 private:
  WorkPlace* place_ = nullptr;
};

// Returns the calling thread's place, to be handed to threads that do some of its work; null if it works for nothing.
// Valid while it does.
const WorkPlace* WorkOfThisThread();

// Marks its thread as doing some of the work of a waiting thread, while the object lives. Confined to its thread.
class HelpAtWork {
 public:
  explicit HelpAtWork(const WorkPlace* work);
  ~HelpAtWork();
  HelpAtWork(const HelpAtWork&) = delete;
  HelpAtWork& operator=(const HelpAtWork&) = delete;

 private:
  const WorkPlace* const before_;
};

// A program that was at work.
struct WorkSeen {
  Fingerprint fingerprint;
  ProgramWork work = ProgramWork::kRun;
};

// Functions for signal handlers: none allocates, locks or calls the system.

// Reads the calling thread's work. False if there is none.
bool SeeWorkOfThisThread(WorkSeen* seen);
// Reads the work of all threads, one after the other: `next` begins at 0, and false is the end. If a thread goes from
// one program to another meanwhile, both may be missed.
bool SeeNextWork(size_t* next, WorkSeen* seen);

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_PROGRAM_AT_WORK_H_
