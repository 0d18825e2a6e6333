#ifndef TENSORD_SERVER_SHARED_MEMORY_SHARED_REGION_H_
#define TENSORD_SERVER_SHARED_MEMORY_SHARED_REGION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace tensord::server {

// Memory that the server made and gave to a client, which may write to it at any time: a reader here must expect other
// bytes at the next read. Its size is sealed, so that no read or write of the mapping can fail. Shared by the store and
// the requests that use it; the last to go takes the pages away, also from a client that still maps them: a region that
// the client keeps costs the client from then on. Thread-safe.
class SharedRegion {
 public:
  // Whole pages, at least `size_bytes`; `released` is called when they are gone. OUT_OF_MEMORY.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Create(std::string id, std::string tenant, int64_t size_bytes,
                                                              std::function<void()> released);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  // Returns the bytes that Create would take for that many bytes; they are at most 2^56.
  static int64_t WholePages(int64_t size_bytes);

  const std::string& id() const { return id_; }
  const std::string& tenant() const { return tenant_; }
  char* bytes() const { return bytes_; }
  int64_t size_bytes() const { return size_bytes_; }
  // The pages stay with the client when this goes: the server ends, and the client may still read its results.
  void LeavePages() { leave_pages_.store(true, std::memory_order_relaxed); }
  // Gives away the descriptor, to be sent to the client, once, and closed then; the mapping needs it no longer.
  int TakeDescriptor() { return std::exchange(descriptor_, -1); }

 private:
  SharedRegion(std::string id, std::string tenant, std::function<void()> released)
      : id_(std::move(id)), tenant_(std::move(tenant)), released_(std::move(released)) {}
  absl::Status Map(int64_t size_bytes);

  const std::string id_;
  const std::string tenant_;
  const std::function<void()> released_;
  char* bytes_ = nullptr;
  int64_t size_bytes_ = 0;
  int descriptor_ = -1;
  std::atomic<bool> leave_pages_{false};
};

using SharedRegionPtr = std::shared_ptr<SharedRegion>;

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SHARED_MEMORY_SHARED_REGION_H_
