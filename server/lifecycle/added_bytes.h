#ifndef TENSORD_SERVER_LIFECYCLE_ADDED_BYTES_H_
#define TENSORD_SERVER_LIFECYCLE_ADDED_BYTES_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/base/status_macros.h"
#include "server/lifecycle/call_gate.h"

namespace tensord::server {

// Bytes that a call needs beside its request, counted in at the gate until this goes. The gate must outlive it.
// Move-only; thread-compatible.
class AddedBytes {
 public:
  // `own` as CallGate::Add has it.
  static absl::StatusOr<AddedBytes> Add(CallGate* gate, int64_t bytes, std::string tenant, int64_t own = 0) {
    RETURN_IF_ERROR(gate->Add(bytes, tenant, own));
    return AddedBytes(gate, bytes, std::move(tenant));
  }
  // Takes over bytes that were counted in already, by who will not count them out.
  static AddedBytes Adopt(CallGate* gate, int64_t bytes, std::string tenant) {
    return AddedBytes(gate, bytes, std::move(tenant));
  }
  AddedBytes(AddedBytes&& other) noexcept
      : gate_(std::exchange(other.gate_, nullptr)), bytes_(other.bytes_), tenant_(std::move(other.tenant_)) {}
  AddedBytes& operator=(AddedBytes&&) = delete;
  ~AddedBytes() {
    if (gate_ != nullptr) gate_->Remove(bytes_, tenant_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  AddedBytes(CallGate* gate, int64_t bytes, std::string tenant)
      : gate_(gate), bytes_(bytes), tenant_(std::move(tenant)) {}

  CallGate* gate_;  // null: moved from
  int64_t bytes_;
  std::string tenant_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_LIFECYCLE_ADDED_BYTES_H_
