#include "backends/cuda/device/context.h"

#include "backends/cuda/libraries/status.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr int kMostModelBytes = 256;

}  // namespace

absl::StatusOr<std::shared_ptr<Context>> Context::Create(const Driver* driver, int ordinal,
                                                         std::shared_ptr<DeviceCounts> counts) {
  std::shared_ptr<Context> context(new Context(driver, std::move(counts)));
  if (const absl::Status opened = context->Open(ordinal); !opened.ok()) return DeviceIsNotThere(ordinal, opened);
  return context;
}

absl::StatusOr<std::string> Context::ModelOf(const Driver* driver, int ordinal) {
  Context none(driver, nullptr);
  if (const absl::Status found = none.Find(ordinal); !found.ok()) return DeviceIsNotThere(ordinal, found);
  return none.model_;
}

absl::Status Context::Open(int ordinal) {
  RETURN_IF_ERROR(Find(ordinal));
  return Check(driver_->cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
}

absl::Status Context::Find(int ordinal) {
  RETURN_IF_ERROR(Check(driver_->cuDeviceGet(&device_, ordinal), "cuDeviceGet"));
  char model[kMostModelBytes] = {};
  RETURN_IF_ERROR(Check(driver_->cuDeviceGetName(model, kMostModelBytes - 1, device_), "cuDeviceGetName"));
  model_ = model;
  return absl::OkStatus();
}

Context::~Context() {
  // Of a lost one too: the driver counts its holders.
  if (context_ != nullptr) driver_->cuDevicePrimaryCtxRelease_v2(device_);
}

void Context::End() {
  if (context_ == nullptr) return;
  context_ = nullptr;
  // It goes with its last holder. Where the process has others, they have the same lost context.
  driver_->cuDevicePrimaryCtxRelease_v2(device_);
  driver_->cuDevicePrimaryCtxReset_v2(device_);
}

absl::Status Context::Enter() {
  if (is_lost()) {
    return Refuse(Refusal::kDeviceLost, "the device has failed; what was on it is gone, compute it again");
  }
  return Check(driver_->cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

absl::Status Context::Visit(absl::FunctionRef<absl::Status()> work) {
  CuContext before = nullptr;
  // It may fail for what another context, which is current here, has done: that is not this one's loss.
  if (driver_->cuCtxGetCurrent(&before) != kCuSuccess) before = nullptr;
  RETURN_IF_ERROR(Enter());
  const absl::Status worked = work();
  // One that has ended meanwhile is nobody's any more: whoever calls the driver enters a context first.
  driver_->cuCtxSetCurrent(before);
  return worked;
}

void Context::Lose() {
  if (!is_lost_->exchange(true)) ++counts_->lost;
}

absl::Status Context::Check(CuResult result, absl::string_view function) {
  if (IsLost(result)) Lose();
  return StatusOf(*driver_, result, function);
}

absl::StatusOr<int> Context::Attribute(int attribute) {
  int value = 0;
  RETURN_IF_ERROR(Check(driver_->cuDeviceGetAttribute(&value, attribute, device_), "cuDeviceGetAttribute"));
  return value;
}

absl::StatusOr<int64_t> Context::FreeBytes() {
  size_t free_bytes = 0, total_bytes = 0;
  RETURN_IF_ERROR(Check(driver_->cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo"));
  return static_cast<int64_t>(free_bytes);
}

}  // namespace tensord::cuda
