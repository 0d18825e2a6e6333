#include "engine/ops/axis_checks.h"

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord {

absl::Status CheckAxis(int64_t axis, int64_t rank, absl::string_view what) {
  if (axis >= 0 && axis < rank) return absl::OkStatus();
  return Refuse(Refusal::kAxisOutOfRange, absl::StrCat(what, " names an axis outside of [0, ", rank, "): ", axis));
}

absl::Status CheckAxes(absl::Span<const int64_t> axes, int64_t rank, absl::string_view what) {
  absl::InlinedVector<bool, 16> seen(static_cast<size_t>(rank));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i];
    RETURN_IF_ERROR(CheckAxis(axis, rank, what));
    if (seen[static_cast<size_t>(axis)]) {
      // Shown up to here: the rest is of any length.
      return Refuse(Refusal::kAxisDuplicate, absl::StrCat(what, " names axis ", axis, " twice: [",
                                                          absl::StrJoin(axes.subspan(0, i + 1), ","), "]"));
    }
    seen[static_cast<size_t>(axis)] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckEngineAxes(absl::Span<const int64_t> axes, int64_t count, int64_t rank, absl::string_view what) {
  if (static_cast<int64_t>(axes.size()) == count && CheckAxes(axes, rank, what).ok()) return absl::OkStatus();
  return Refuse(Refusal::kAttributeInvalid, absl::StrCat(what, " must name ", count, " different axes of ", rank,
                                                         ", and is [", absl::StrJoin(axes, ","), "]"));
}

absl::Status CheckLength(size_t length, int64_t count, absl::string_view what) {
  if (static_cast<int64_t>(length) == count) return absl::OkStatus();
  return Refuse(Refusal::kAttributeInvalid, absl::StrCat(what, " must have ", count, " entries, and has ", length));
}

absl::Status CheckDType(DType dtype, DTypeSet allowed, absl::string_view what) {
  if (allowed.Contains(dtype)) return absl::OkStatus();
  std::string names;
  for (DType d : kAllDTypes) {
    if (allowed.Contains(d)) absl::StrAppend(&names, names.empty() ? "" : ", ", Name(d));
  }
  return Refuse(Refusal::kDtypeUnsupported,
                absl::StrCat(what, " must have a dtype of ", names, ", and has ", Name(dtype)));
}

absl::Status CheckSameDType(const TensorType& a, const TensorType& b, absl::string_view what) {
  if (a.dtype == b.dtype) return absl::OkStatus();
  return Refuse(Refusal::kDtypeMismatch, absl::StrCat(what, " must have one dtype, and have ", Name(a.dtype), " and ",
                                                      Name(b.dtype), "; insert a Convert"));
}

}  // namespace tensord
