#ifndef TENSORD_SERVER_LIFECYCLE_ADDED_BYTES_H_
#define TENSORD_SERVER_LIFECYCLE_ADDED_BYTES_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/status_macros.h"
#include "server/lifecycle/tenant_bytes.h"

namespace tensord::server {

// Bytes that a call needs beside its request, counted in until this goes. Their counter must outlive it. Move-only;
// thread-compatible.
class AddedBytes {
 public:
  // `own` as TenantBytes::Add has it.
  static absl::StatusOr<AddedBytes> Add(TenantBytes* all, int64_t bytes, std::string tenant, int64_t own = 0) {
    RETURN_IF_ERROR(all->Add(bytes, tenant, own));
    return AddedBytes(all, bytes, std::move(tenant));
  }
  // Takes over bytes that are counted in already; the former owner will not count them out.
  static AddedBytes Adopt(TenantBytes* all, int64_t bytes, std::string tenant) {
    return AddedBytes(all, bytes, std::move(tenant));
  }
  AddedBytes(AddedBytes&& other) noexcept
      : all_(std::exchange(other.all_, nullptr)), bytes_(other.bytes_), tenant_(std::move(other.tenant_)) {}
  AddedBytes& operator=(AddedBytes&&) = delete;
  ~AddedBytes() {
    if (all_ != nullptr) all_->Remove(bytes_, tenant_);
  }
  int64_t bytes() const { return bytes_; }
  // Counts further bytes in, up to `bytes`, whatever the bounds are.
  void Overdraw(int64_t bytes) {
    if (bytes <= bytes_) return;
    all_->Overdraw(bytes - bytes_, tenant_);
    bytes_ = bytes;
  }

 private:
  AddedBytes(TenantBytes* all, int64_t bytes, std::string tenant)
      : all_(all), bytes_(bytes), tenant_(std::move(tenant)) {}

  TenantBytes* all_;  // null: moved from
  int64_t bytes_;
  std::string tenant_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_ADDED_BYTES_H_
