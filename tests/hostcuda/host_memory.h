#ifndef TENSORD_TESTS_HOSTCUDA_HOST_MEMORY_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_MEMORY_H_

#include <cstddef>
#include <map>
#include <mutex>

#include "backends/cuda/abi/driver.h"
#include "tests/hostcuda/host_context.h"

namespace tensord::cuda::host {

inline constexpr size_t kGranuleBytes = size_t{2} << 20;  // of what is mapped

// The memory of all devices: each allocation is of the calling thread's, and every device reaches all. Its addresses
// are of a range that is reserved and never mapped, so the host cannot touch it; the bytes lie in a second range of the
// same size, the alias. No address is given out twice, and a fence lies between any two, so that what goes past an
// allocation faults, or is found in the slack when the memory is freed. Fresh memory is full of 0xCD. Errors are the
// driver's. Thread-safe.
class DeviceMemory {
 public:
  static DeviceMemory& Get();

  // cuMemAlloc and cuMemFree. An allocation is aligned to 256 bytes and ends as near to the fence as that allows.
  CuResult Allocate(size_t bytes, CuAddress* address);
  CuResult Free(CuAddress address);

  // Virtual memory management: cuMemAddressReserve, cuMemCreate and so on.
  CuResult Reserve(size_t bytes, size_t alignment, CuAddress* address);
  CuResult Unreserve(CuAddress address, size_t bytes);
  CuResult Create(size_t bytes, CuAllocation* allocation);
  CuResult Release(CuAllocation allocation);
  CuResult Map(CuAddress address, size_t bytes, size_t offset, CuAllocation allocation);
  CuResult Unmap(CuAddress address, size_t bytes);
  CuResult SetAccess(CuAddress address, size_t bytes);

  // Frees all that is of a context.
  void Clear(const Context& context);

  // Returns where the bytes of a device address are; null for 0, and the fence for what is no device address.
  char* Reveal(CuAddress address) const;
  // True if all of the bytes lie in one allocation, or in mapped memory.
  bool Has(const char* alias, size_t bytes);
  // True for a place in the alias, whatever lies there.
  bool IsAlias(const void* at) const;

  size_t total_bytes();
  size_t free_bytes();
  long live();
  long overruns();

 private:
  struct Block {
    size_t bytes, begin, page_bytes;  // the caller's bytes, and the pages that they lie in
    const Context* context;
  };
  struct Physical {
    size_t offset, bytes;  // in file_
    const Context* context;
    long mappings = 0;
    bool is_released = false;
  };
  struct Mapping {
    size_t bytes;
    CuAllocation allocation;
    bool is_accessible = false;
  };

  DeviceMemory();
  size_t OffsetOf(CuAddress address) const { return static_cast<size_t>(address - hidden_); }
  // Takes addresses with a fence before and behind; 0 if there are no more.
  size_t TakeAddresses(size_t bytes, size_t alignment);
  CuResult FreeBlock(std::map<size_t, Block>::iterator block);
  void DropIfUnused(std::map<CuAllocation, Physical>::iterator physical);
  bool CoversMappings(size_t begin, size_t bytes) const;

  CuAddress hidden_;
  char* alias_;
  int file_;  // of the memory that is mapped
  std::mutex mutex_;
  size_t next_address_ = 0, next_offset_ = 0;
  std::map<const Context*, size_t> used_bytes_;
  CuAllocation next_allocation_ = 1;
  std::map<size_t, Block> blocks_;
  struct Reservation {
    size_t bytes;
    const Context* context;
  };
  std::map<size_t, Reservation> reservations_;
  std::map<CuAllocation, Physical> physicals_;
  std::map<size_t, Mapping> mappings_;
  long overruns_ = 0;
};

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_MEMORY_H_
