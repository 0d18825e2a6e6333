#ifndef TENSORD_SERVER_SESSIONS_RESIDENT_LEDGER_H_
#define TENSORD_SERVER_SESSIONS_RESIDENT_LEDGER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/mutex.h"
#include "server/sessions/tensor_end.h"

namespace tensord::server {

class ResidentLedger;

// The least charge of a handle: about the host's memory for its name, its slot and its place in the tables.
inline constexpr int64_t kHandleBytes = 1024;

// Returns the charge of a tensor of so many bytes under one handle.
constexpr int64_t ChargedBytes(int64_t tensor_bytes) {
  return tensor_bytes < kHandleBytes ? kHandleBytes : tensor_bytes;
}

// Bytes that are charged to a tenant on a device, until they are released or the charge goes. Move-only;
// thread-compatible. Keeps its ledger alive.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  MemoryCharge(MemoryCharge&& other) noexcept { *this = std::move(other); }
  MemoryCharge& operator=(MemoryCharge&& other) noexcept;
  ~MemoryCharge() { Release(); }

  int64_t bytes() const { return bytes_; }
  const std::string& tenant() const { return tenant_; }
  const std::string& device() const { return device_; }
  const std::shared_ptr<ResidentLedger>& ledger() const { return ledger_; }

  // Splits off that much, or all if there is less.
  MemoryCharge Take(int64_t bytes);
  // Adds a charge of the same tenant and device; to one that was made of nothing, any.
  void Add(MemoryCharge other);
  void Release();

 private:
  friend class ResidentLedger;
  MemoryCharge(std::shared_ptr<ResidentLedger> ledger, std::string tenant, std::string device, int64_t bytes)
      : ledger_(std::move(ledger)), tenant_(std::move(tenant)), device_(std::move(device)), bytes_(bytes) {}

  std::shared_ptr<ResidentLedger> ledger_;
  std::string tenant_;
  std::string device_;
  int64_t bytes_ = 0;
};

// The memory of resident tensors, by tenant and by device, held to limits before any memory is allocated. Thread-safe.
// Always in a shared_ptr: charges keep it alive, and the memory of a tensor may be read after its session is gone.
class ResidentLedger : public std::enable_shared_from_this<ResidentLedger> {
 public:
  struct Limits {
    int64_t tenant_bytes = std::numeric_limits<int64_t>::max();  // on all devices together
    int64_t device_bytes = std::numeric_limits<int64_t>::max();  // of all tenants together
  };
  struct DeviceUse {
    int64_t tensors = 0;
    int64_t bytes = 0;
  };

  // Told, under no lock, of every change of a device's bytes; thread-safe.
  using Changed = std::function<void(const std::string& device, int64_t more)>;

  explicit ResidentLedger(const Limits& limits, Changed changed = nullptr)
      : changed_(std::move(changed)), limits_(limits) {}

  // Fails with LIMIT_EXCEEDED, naming sessions.tenant_bytes or sessions.device_bytes.
  absl::StatusOr<MemoryCharge> Charge(absl::string_view tenant, absl::string_view device, int64_t bytes);
  // Charges likewise beyond limits too, for existing memory. The next Charge is refused the sooner.
  MemoryCharge ChargeAnyway(absl::string_view tenant, absl::string_view device, int64_t bytes);
  // Sets the limits of later charges; existing ones stay.
  void SetLimits(const Limits& limits);
  // Memory of one tensor more, or less, on the device.
  void CountTensor(absl::string_view device, int64_t more);

  // Counts tensors that lost their handles.
  void CountEnds(TensorEnd end, int64_t tensors) {
    ends_[static_cast<size_t>(end)].fetch_add(tensors, std::memory_order_relaxed);
  }

  int64_t TenantBytes(absl::string_view tenant) const;
  // Returns the bytes of tenants that have some.
  std::map<std::string, int64_t> Tenants() const;
  std::map<std::string, DeviceUse> Devices() const;
  TensorEnds ends() const;

 private:
  friend class MemoryCharge;
  absl::Status Add(const std::string& tenant, const std::string& device, int64_t bytes, bool anyway);
  void Release(const std::string& tenant, const std::string& device, int64_t bytes);

  const Changed changed_;  // may be null
  mutable Mutex mutex_;
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t, std::less<>> tenants_ ABSL_GUARDED_BY(mutex_);  // those with bytes
  std::map<std::string, DeviceUse, std::less<>> devices_ ABSL_GUARDED_BY(mutex_);
  std::array<std::atomic<int64_t>, kNumTensorEnds> ends_{};
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SESSIONS_RESIDENT_LEDGER_H_
