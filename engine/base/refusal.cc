#include "engine/base/refusal.h"

#include <array>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tensord {
namespace {

constexpr RefusalInfo kRefusals[] = {
#define TENSORD_REFUSAL(name, id, code, doc) {Refusal::name, id, absl::StatusCode::code, doc},
#include "engine/base/refusals.def"
#undef TENSORD_REFUSAL
};

constexpr char kDetailPayload[] = "tensord/refusal-detail";
// The bytes of a detail beside its strings.
constexpr size_t kOtherDetailBytes = 4 * sizeof(uint32_t) + 3 * sizeof(int64_t);

void AppendField(std::string* out, absl::string_view field) {
  const uint32_t size = static_cast<uint32_t>(field.size());
  out->append(reinterpret_cast<const char*>(&size), sizeof(size));
  out->append(field.data(), field.size());
}

void AppendField(std::string* out, int64_t value) { out->append(reinterpret_cast<const char*>(&value), sizeof(value)); }

class FieldReader {
 public:
  explicit FieldReader(absl::string_view bytes) : bytes_(bytes) {}

  std::string String() {
    uint32_t size = 0;
    Copy(&size, sizeof(size));
    if (!ok_ || size > bytes_.size()) {
      ok_ = false;
      return {};
    }
    std::string field(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return field;
  }

  int64_t Int() {
    int64_t value = 0;
    Copy(&value, sizeof(value));
    return value;
  }

  bool ok() const { return ok_; }

 private:
  void Copy(void* to, size_t size) {
    if (!ok_ || size > bytes_.size()) {
      ok_ = false;
      return;
    }
    std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }

  absl::string_view bytes_;
  bool ok_ = true;
};

void SetDetail(absl::Status* status, const RefusalDetail& detail) {
  std::string bytes;
  bytes.reserve(detail.reason.size() + detail.node.size() + detail.op.size() + detail.limit.size() + kOtherDetailBytes);
  AppendField(&bytes, detail.reason);
  AppendField(&bytes, detail.node);
  AppendField(&bytes, detail.op);
  AppendField(&bytes, detail.limit);
  AppendField(&bytes, detail.limit_value);
  AppendField(&bytes, detail.actual_value);
  AppendField(&bytes, absl::ToInt64Nanoseconds(detail.retry_after));
  status->SetPayload(kDetailPayload, absl::Cord(bytes));
}

std::string NodeSuffix(absl::string_view node, absl::string_view op) {
  return absl::StrCat(" (node \"", node, "\"", op.empty() ? "" : ", op ", op, ")");
}

}  // namespace

absl::Span<const RefusalInfo> AllRefusals() { return kRefusals; }

const RefusalInfo& InfoOf(Refusal refusal) { return kRefusals[static_cast<size_t>(refusal)]; }

absl::Status Refuse(Refusal refusal, absl::string_view message) {
  const RefusalInfo& info = InfoOf(refusal);
  absl::Status status(info.code, message);
  SetDetail(&status, {.reason = std::string(info.id)});
  return status;
}

absl::Status RefuseLimit(absl::string_view limit, int64_t limit_value, int64_t actual_value, absl::string_view what) {
  return RefuseLimit(Refusal::kLimitExceeded, limit, limit_value, actual_value, what);
}

absl::Status RefuseLimit(Refusal refusal, absl::string_view limit, int64_t limit_value, int64_t actual_value,
                         absl::string_view what, absl::Duration retry_after) {
  const RefusalInfo& info = InfoOf(refusal);
  absl::Status status(info.code,
                      absl::StrCat(what, ": ", actual_value, " is beyond the limit ", limit, " = ", limit_value));
  SetDetail(&status, {.reason = std::string(info.id),
                      .limit = std::string(limit),
                      .limit_value = limit_value,
                      .actual_value = actual_value,
                      .retry_after = retry_after});
  return status;
}

absl::Status WithRetryAfter(absl::Status status, absl::Duration retry_after) {
  std::optional<RefusalDetail> detail = DetailOf(status);
  if (!detail.has_value()) return status;
  detail->retry_after = retry_after;
  SetDetail(&status, *detail);
  return status;
}

absl::Status WithNode(absl::Status status, absl::string_view node, absl::string_view op) {
  if (status.ok() || node.empty()) return status;
  RefusalDetail detail = DetailOf(status).value_or(RefusalDetail{});
  if (!detail.node.empty()) return status;
  detail.node = std::string(node);
  detail.op = std::string(op);
  absl::Status named(status.code(), absl::StrCat(status.message(), NodeSuffix(node, op)));
  SetDetail(&named, detail);
  return named;
}

absl::Status WithOtherNode(absl::Status status, absl::string_view node) {
  std::optional<RefusalDetail> detail = DetailOf(status);
  if (!detail.has_value() || detail->node.empty()) return status;
  absl::string_view message = status.message();
  absl::ConsumeSuffix(&message, NodeSuffix(detail->node, detail->op));
  detail->node = std::string(node);
  absl::Status named(status.code(), absl::StrCat(message, NodeSuffix(node, detail->op)));
  SetDetail(&named, *detail);
  return named;
}

std::optional<RefusalDetail> DetailOf(const absl::Status& status) {
  if (status.ok()) return std::nullopt;
  const absl::optional<absl::Cord> payload = status.GetPayload(kDetailPayload);
  if (!payload.has_value()) return std::nullopt;
  std::string joined;
  absl::string_view bytes;
  if (const absl::optional<absl::string_view> flat = payload->TryFlat(); flat.has_value()) {
    bytes = *flat;
  } else {
    joined = std::string(*payload);
    bytes = joined;
  }
  FieldReader reader(bytes);
  RefusalDetail detail;
  detail.reason = reader.String();
  detail.node = reader.String();
  detail.op = reader.String();
  detail.limit = reader.String();
  detail.limit_value = reader.Int();
  detail.actual_value = reader.Int();
  detail.retry_after = absl::Nanoseconds(reader.Int());
  if (!reader.ok()) return std::nullopt;
  return detail;
}

bool IsRefusal(const absl::Status& status, Refusal refusal) {
  const RefusalInfo& info = InfoOf(refusal);
  if (status.code() != info.code) return false;
  const std::optional<RefusalDetail> detail = DetailOf(status);
  return detail.has_value() && detail->reason == info.id;
}

}  // namespace tensord
