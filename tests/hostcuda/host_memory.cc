#include "tests/hostcuda/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/hostcuda/host_settings.h"

namespace tensord::cuda::host {
namespace {

constexpr size_t kPageBytes = 4096, kAlignmentBytes = 256;
constexpr size_t kReservedBytes = size_t{1} << 40;
constexpr unsigned char kFresh = 0xCD, kSlack = 0x5A;

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

char* ReserveRange() {
  void* range = mmap(nullptr, kReservedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    std::perror("hostcuda: reserving addresses");
    std::abort();
  }
  return static_cast<char*>(range);
}

void ForgetPages(char* at, size_t bytes) {
  mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

}  // namespace

DeviceMemory& DeviceMemory::Get() {
  static DeviceMemory* const memory = new DeviceMemory;
  return *memory;
}

DeviceMemory::DeviceMemory()
    : hidden_(reinterpret_cast<CuAddress>(ReserveRange())),
      alias_(ReserveRange()),
      file_(memfd_create("host_cuda_memory", MFD_CLOEXEC)) {
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(kReservedBytes)) != 0) {
    std::perror("hostcuda: memory to map");
    std::abort();
  }
}

size_t DeviceMemory::TakeAddresses(size_t bytes, size_t alignment) {
  if (bytes > kReservedBytes || alignment > kReservedBytes) return 0;
  // Aligned as an address, which the range itself need not be.
  const size_t base = static_cast<size_t>(hidden_);
  const size_t begin = RoundUp(base + next_address_ + kPageBytes, alignment) - base;
  const size_t end = begin + bytes + kPageBytes;
  if (end > kReservedBytes - kPageBytes) return 0;
  next_address_ = end;
  return begin;
}

CuResult DeviceMemory::Allocate(size_t bytes, CuAddress* address) {
  if (bytes == 0 || address == nullptr) return kCuInvalidValue;
  const size_t total = total_bytes();
  std::lock_guard lock(mutex_);
  if (bytes > total) return kCuOutOfMemory;
  const size_t rounded = RoundUp(bytes, kAlignmentBytes), page_bytes = RoundUp(rounded, kPageBytes);
  size_t& used_bytes = used_bytes_[&Context::Get()];
  if (used_bytes + page_bytes > total) return kCuOutOfMemory;
  const size_t begin = TakeAddresses(page_bytes, kPageBytes);
  if (begin == 0 || mprotect(alias_ + begin, page_bytes, PROT_READ | PROT_WRITE) != 0) return kCuOutOfMemory;
  used_bytes += page_bytes;
  const size_t at = begin + page_bytes - rounded;
  std::memset(alias_ + begin, kFresh, page_bytes);
  std::memset(alias_ + at + bytes, kSlack, rounded - bytes);
  blocks_[at] = {bytes, begin, page_bytes, &Context::Get()};
  *address = hidden_ + at;
  return kCuSuccess;
}

CuResult DeviceMemory::Free(CuAddress address) {
  if (address == 0) return kCuSuccess;
  std::lock_guard lock(mutex_);
  const auto block = blocks_.find(OffsetOf(address));
  return block == blocks_.end() ? kCuInvalidValue : FreeBlock(block);
}

CuResult DeviceMemory::FreeBlock(std::map<size_t, Block>::iterator block) {
  const auto [bytes, begin, page_bytes, context] = block->second;
  const char* slack = alias_ + block->first + bytes;
  const char* slack_end = alias_ + block->first + RoundUp(bytes, kAlignmentBytes);
  if (std::any_of(slack, slack_end, [](char byte) { return static_cast<unsigned char>(byte) != kSlack; })) {
    std::fprintf(stderr, "hostcuda: something has written past an allocation of %zu bytes\n", bytes);
    ++overruns_;
  }
  ForgetPages(alias_ + begin, page_bytes);
  used_bytes_[context] -= page_bytes;
  blocks_.erase(block);
  return kCuSuccess;
}

CuResult DeviceMemory::Reserve(size_t bytes, size_t alignment, CuAddress* address) {
  const bool is_power = (alignment & (alignment - 1)) == 0;
  if (bytes == 0 || bytes % kGranuleBytes != 0 || !is_power || address == nullptr) return kCuInvalidValue;
  std::lock_guard lock(mutex_);
  const size_t begin = TakeAddresses(bytes, std::max(alignment, kGranuleBytes));
  if (begin == 0) return kCuOutOfMemory;
  reservations_[begin] = {bytes, &Context::Get()};
  *address = hidden_ + begin;
  return kCuSuccess;
}

CuResult DeviceMemory::Unreserve(CuAddress address, size_t bytes) {
  std::lock_guard lock(mutex_);
  const size_t begin = OffsetOf(address);
  const auto it = reservations_.find(begin);
  if (it == reservations_.end() || it->second.bytes != bytes) return kCuInvalidValue;
  const auto mapping = mappings_.lower_bound(begin);
  if (mapping != mappings_.end() && mapping->first < begin + bytes) return kCuInvalidValue;
  reservations_.erase(it);
  return kCuSuccess;
}

CuResult DeviceMemory::Create(size_t bytes, CuAllocation* allocation) {
  if (bytes == 0 || bytes % kGranuleBytes != 0 || allocation == nullptr) return kCuInvalidValue;
  const size_t total = total_bytes();
  std::lock_guard lock(mutex_);
  size_t& used_bytes = used_bytes_[&Context::Get()];
  if (bytes > total || used_bytes + bytes > total || next_offset_ + bytes > kReservedBytes) return kCuOutOfMemory;
  const std::vector<char> fresh(kGranuleBytes, static_cast<char>(kFresh));
  for (size_t done = 0; done < bytes; done += kGranuleBytes) {
    if (pwrite(file_, fresh.data(), kGranuleBytes, static_cast<off_t>(next_offset_ + done)) !=
        static_cast<ssize_t>(kGranuleBytes)) {
      return kCuOutOfMemory;
    }
  }
  used_bytes += bytes;
  *allocation = next_allocation_++;
  physicals_[*allocation] = {next_offset_, bytes, &Context::Get()};
  next_offset_ += bytes;
  return kCuSuccess;
}

void DeviceMemory::DropIfUnused(std::map<CuAllocation, Physical>::iterator physical) {
  const Physical& p = physical->second;
  if (!p.is_released || p.mappings > 0) return;
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(p.offset),
            static_cast<off_t>(p.bytes));
  used_bytes_[p.context] -= p.bytes;
  physicals_.erase(physical);
}

CuResult DeviceMemory::Release(CuAllocation allocation) {
  std::lock_guard lock(mutex_);
  const auto it = physicals_.find(allocation);
  if (it == physicals_.end() || it->second.is_released) return kCuInvalidValue;
  it->second.is_released = true;
  DropIfUnused(it);
  return kCuSuccess;
}

CuResult DeviceMemory::Map(CuAddress address, size_t bytes, size_t offset, CuAllocation allocation) {
  std::lock_guard lock(mutex_);
  const auto physical = physicals_.find(allocation);
  if (physical == physicals_.end() || physical->second.is_released) return kCuInvalidValue;
  if (offset != 0 || bytes == 0 || bytes % kGranuleBytes != 0 || bytes > physical->second.bytes) return kCuInvalidValue;
  const size_t begin = OffsetOf(address);
  auto reservation = reservations_.upper_bound(begin);
  if (address % kGranuleBytes != 0 || reservation == reservations_.begin()) return kCuInvalidValue;
  --reservation;
  if (begin + bytes > reservation->first + reservation->second.bytes) return kCuInvalidValue;
  auto next = mappings_.lower_bound(begin);
  if (next != mappings_.end() && next->first < begin + bytes) return kCuInvalidValue;
  if (next != mappings_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > begin) {
    return kCuInvalidValue;
  }
  if (mmap(alias_ + begin, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file_,
           static_cast<off_t>(physical->second.offset)) == MAP_FAILED) {
    return kCuOutOfMemory;
  }
  ++physical->second.mappings;
  mappings_[begin] = {bytes, allocation};
  return kCuSuccess;
}

// True if the range is that of one mapping, or of several in a row.
bool DeviceMemory::CoversMappings(size_t begin, size_t bytes) const {
  size_t at = begin;
  for (auto it = mappings_.find(begin); at < begin + bytes; ++it) {
    if (it == mappings_.end() || it->first != at) return false;
    at += it->second.bytes;
  }
  return bytes > 0 && at == begin + bytes;
}

CuResult DeviceMemory::Unmap(CuAddress address, size_t bytes) {
  std::lock_guard lock(mutex_);
  const size_t begin = OffsetOf(address);
  if (!CoversMappings(begin, bytes)) return kCuInvalidValue;
  ForgetPages(alias_ + begin, bytes);
  for (auto it = mappings_.find(begin); it != mappings_.end() && it->first < begin + bytes;) {
    const auto physical = physicals_.find(it->second.allocation);
    --physical->second.mappings;
    DropIfUnused(physical);
    it = mappings_.erase(it);
  }
  return kCuSuccess;
}

CuResult DeviceMemory::SetAccess(CuAddress address, size_t bytes) {
  std::lock_guard lock(mutex_);
  const size_t begin = OffsetOf(address);
  if (!CoversMappings(begin, bytes)) return kCuInvalidValue;
  if (mprotect(alias_ + begin, bytes, PROT_READ | PROT_WRITE) != 0) return kCuOutOfMemory;
  for (auto it = mappings_.find(begin); it != mappings_.end() && it->first < begin + bytes; ++it) {
    it->second.is_accessible = true;
  }
  return kCuSuccess;
}

void DeviceMemory::Clear(const Context& context) {
  std::lock_guard lock(mutex_);
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    const auto block = it++;
    if (block->second.context == &context) FreeBlock(block);
  }
  for (auto it = mappings_.begin(); it != mappings_.end();) {
    const auto mapping = it++;
    if (physicals_.find(mapping->second.allocation)->second.context != &context) continue;
    ForgetPages(alias_ + mapping->first, mapping->second.bytes);
    mappings_.erase(mapping);
  }
  std::erase_if(reservations_, [&](const auto& entry) { return entry.second.context == &context; });
  for (auto it = physicals_.begin(); it != physicals_.end();) {
    const auto physical = it++;
    if (physical->second.context != &context) continue;
    physical->second.is_released = true;
    physical->second.mappings = 0;
    DropIfUnused(physical);
  }
}

char* DeviceMemory::Reveal(CuAddress address) const {
  if (address == 0) return nullptr;
  const size_t offset = OffsetOf(address);
  return alias_ + (offset < kReservedBytes ? offset : kReservedBytes - kPageBytes);
}

bool DeviceMemory::Has(const char* alias, size_t bytes) {
  if (!IsAlias(alias)) return false;
  const size_t at = static_cast<size_t>(alias - alias_);
  std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(at);
  if (block != blocks_.begin()) {
    --block;
    if (at + bytes <= block->first + block->second.bytes) return true;
  }
  auto mapping = mappings_.upper_bound(at);
  if (mapping == mappings_.begin()) return false;
  --mapping;
  size_t end = mapping->first;
  for (; mapping != mappings_.end() && mapping->first == end && mapping->second.is_accessible; ++mapping) {
    end += mapping->second.bytes;
    if (at + bytes <= end) return true;
  }
  return false;
}

bool DeviceMemory::IsAlias(const void* at) const {
  const char* place = static_cast<const char*>(at);
  return place >= alias_ && place < alias_ + kReservedBytes;
}

size_t DeviceMemory::total_bytes() { return static_cast<size_t>(Settings::Get().Number("MEMORY", 4l << 30)); }

size_t DeviceMemory::free_bytes() {
  const size_t total = total_bytes();
  std::lock_guard lock(mutex_);
  const size_t used_bytes = used_bytes_[&Context::Get()];
  return used_bytes > total ? 0 : total - used_bytes;
}

long DeviceMemory::live() {
  std::lock_guard lock(mutex_);
  return static_cast<long>(blocks_.size() + reservations_.size() + physicals_.size());
}

long DeviceMemory::overruns() {
  std::lock_guard lock(mutex_);
  return overruns_;
}

}  // namespace tensord::cuda::host
