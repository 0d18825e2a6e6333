#ifndef TENSORD_TESTS_HOSTCUDA_HOST_FIBERS_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_FIBERS_H_

#include <cstddef>
#include <vector>

#include "tests/hostcuda/host_services.h"

namespace tensord::cuda::host {

inline constexpr unsigned kMaxThreads = 1024, kWarp = 32;

// The thread of a kernel that runs on this thread of the host, and how often it has waited.
struct ThreadPosition {
  unsigned block = 0, thread = 0, barriers = 0, shuffles = 0;
};
ThreadPosition& Position();

// One thread's share of a kernel.
struct ThreadBody {
  void (*run)(void**);
  void** arguments;
  HostState* state;
};

// The threads of a block, on one thread of the host: fibers with stacks of their own, which go on from one place where
// they wait to the next. Confined to its thread.
class Fibers {
 public:
  // Returns this thread's.
  static Fibers& Get();
  ~Fibers();

  // Runs a block, warp after warp: each until all its threads wait for the block, or are through. Returns null, or the
  // rule that they have broken.
  const char* Run(const ThreadBody& body, unsigned threads, bool reverse);

  // Lets the running fiber wait.
  void Wait(HostWait kind);
  unsigned long long* words() { return words_.data(); }

 private:
  enum State { kRunning, kAtBarrier, kAtShuffle, kDone };
  struct Fiber {
    void* stack_pointer = nullptr;
    State state = kRunning;
    unsigned barriers = 0, shuffles = 0;
  };

  Fibers();
  static void Enter();
  char* stack(unsigned thread) const;
  void Prepare(unsigned threads);
  const char* RunWarp(unsigned first, unsigned end, bool reverse);
  void Resume(unsigned thread);

  char* stacks_ = nullptr;
  std::vector<Fiber> fibers_;
  std::vector<unsigned long long> words_;
  void* scheduler_ = nullptr;
  unsigned current_ = 0;
  ThreadBody body_ = {};
};

// Sets the place of a thread in its block.
void PlaceThread(HostState* state, unsigned thread);

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_FIBERS_H_
