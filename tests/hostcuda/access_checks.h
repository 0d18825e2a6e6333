#ifndef TENSORD_TESTS_HOSTCUDA_ACCESS_CHECKS_H_
#define TENSORD_TESTS_HOSTCUDA_ACCESS_CHECKS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tests/hostcuda/host_control.h"
#include "tests/hostcuda/host_services.h"

namespace tensord::cuda::host {

// A range of this process's memory.
struct MemoryRange {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool Has(const void* at) const { return at >= begin && at < end; }
};

// A launch of a checked kernel.
struct CheckedLaunch {
  std::string kernel;
  MemoryRange shared;         // all that there is for dynamic shared memory
  MemoryRange dynamic_bytes;  // the part of it that the launch asked for
  MemoryRange statics;        // the library's variables: static shared memory
  MemoryRange state;          // the library's HostState, which is nobody's memory
};

// Follows the accesses of a launch to memory, and reports:
//
//   bounds  a byte that is in no allocation, or beyond the shared memory that was asked for
//   races   two threads at a byte, of which one writes, with nothing between that orders them: a barrier of the block,
//           a shuffle within a warp. Blocks of a launch are never ordered; atomics are, with each other.
//
// and counts 32-byte sectors and turns of banks by a warp's requests. Confined to its thread.
class AccessChecks {
 public:
  // Returns this thread's.
  static AccessChecks& Get();

  void Begin(CheckedLaunch launch);
  // Returns how many accesses were wrong. Standard error has the first three.
  long End();

  void Access(const void* at, size_t bytes, HostAccess kind, void* instruction);

 private:
  struct Byte {
    uint32_t launch = 0, block = 0;
    int32_t writer = -1, reader = -1;  // threads; reader -2 are several
    uint32_t write_barrier = 0, read_barrier = 0, write_shuffle = 0, read_shuffle = 0;
    bool is_atomic = false;  // the write
  };
  struct Site {
    size_t bytes = 0;
    bool is_shared = false;
    std::vector<uint32_t> turns;  // by thread of the first blocks: requests so far
  };
  using Request = std::tuple<void*, uint32_t, uint32_t, uint32_t>;  // instruction, block, warp, turn

  void Report(const char* what, const void* at, size_t bytes);
  bool IsOrdered(int32_t other, uint32_t barrier, uint32_t shuffle) const;
  bool IsReadOrdered(const Byte& byte) const;
  int32_t ReaderOf(const Byte& byte) const;
  void CheckRace(const char* at, size_t bytes, HostAccess kind, bool is_shared);
  void CheckByte(Byte* byte, const char* at, size_t bytes, HostAccess kind);
  void Count(const char* at, size_t bytes, bool is_shared, void* instruction);
  void AddCounts();

  CheckedLaunch launch_;
  uint32_t number_ = 0;
  long problems_ = 0;
  std::unordered_map<uintptr_t, Byte> bytes_;
  std::map<Request, std::set<uintptr_t>> requests_;
  std::unordered_map<void*, Site> sites_;
};

// Adds up the counts of all threads; takes them away again.
HostCounts TakeCounts();
long AllProblems();

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_ACCESS_CHECKS_H_
