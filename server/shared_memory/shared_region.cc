#include "server/shared_memory/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::server {
namespace {

constexpr int64_t kHugePageBytes = int64_t{2} << 20;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE of Linux 5.14, which older headers lack

absl::Status NoMemory(absl::string_view step, int64_t size_bytes) {
  return Refuse(Refusal::kOutOfMemory,
                absl::StrCat("no shared memory of ", size_bytes, " bytes: ", step, ": ", std::strerror(errno)));
}

}  // namespace

int64_t SharedRegion::WholePages(int64_t size_bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  return (std::max(size_bytes, int64_t{1}) + page - 1) / page * page;
}

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::Create(std::string id, std::string tenant,
                                                                   int64_t size_bytes, std::function<void()> released) {
  std::shared_ptr<SharedRegion> region(new SharedRegion(std::move(id), std::move(tenant), std::move(released)));
  RETURN_IF_ERROR(region->Map(WholePages(size_bytes)));
  return region;
}

absl::Status SharedRegion::Map(int64_t size_bytes) {
  const size_t size = static_cast<size_t>(size_bytes);
  // No huge pages of the reserved pool: one that the client punches out could not be had again, and reading it would
  // end the server.
  descriptor_ = memfd_create("tensord-region", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor_ < 0) return NoMemory("memfd_create", size_bytes);
  if (ftruncate(descriptor_, size_bytes) != 0) return NoMemory("ftruncate", size_bytes);
  if (fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return NoMemory("F_ADD_SEALS", size_bytes);
  }
  void* const address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (address == MAP_FAILED) return NoMemory("mmap", size_bytes);
  bytes_ = static_cast<char*>(address);
  size_bytes_ = size_bytes;
  if (size_bytes >= kHugePageBytes) madvise(address, size, MADV_HUGEPAGE);
  // Memory that is promised is there, and no run pays for its pages.
  if (madvise(address, size, kPopulateWrite) == 0) return absl::OkStatus();
  if (errno != EINVAL) return NoMemory("populate", size_bytes);
  if (fallocate(descriptor_, 0, 0, size_bytes) != 0) return NoMemory("fallocate", size_bytes);
  return absl::OkStatus();
}

SharedRegion::~SharedRegion() {
  if (bytes_ != nullptr) {
    if (!leave_pages_.load(std::memory_order_relaxed)) madvise(bytes_, static_cast<size_t>(size_bytes_), MADV_REMOVE);
    munmap(bytes_, static_cast<size_t>(size_bytes_));
  }
  if (descriptor_ >= 0) close(descriptor_);
  if (released_) released_();
}

}  // namespace tensord::server
