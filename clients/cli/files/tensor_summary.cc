#include "clients/cli/files/tensor_summary.h"

#include <algorithm>
#include <complex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace tensord::cli {
namespace {

constexpr int64_t kShownValues = 8;

std::string AsText(bool value) { return value ? "true" : "false"; }
std::string AsText(int32_t value) { return absl::StrCat(value); }
std::string AsText(int64_t value) { return absl::StrCat(value); }
std::string AsText(float value) { return absl::StrFormat("%.7g", value); }
std::string AsText(double value) { return absl::StrFormat("%.10g", value); }
std::string AsText(client::Half value) { return absl::StrFormat("%.4g", value.ToFloat()); }
std::string AsText(client::BFloat16 value) { return absl::StrFormat("%.3g", value.ToFloat()); }
template <typename T>
std::string AsText(std::complex<T> value) {
  return absl::StrFormat("%.7g%+.7gi", value.real(), value.imag());
}

template <typename T>
std::vector<std::string> FirstValuesOf(const client::HostTensor& tensor, int64_t count) {
  std::vector<std::string> texts;
  const absl::StatusOr<absl::Span<const T>> values = tensor.Values<T>();
  if (!values.ok()) return texts;
  for (const T& value : values->first(static_cast<size_t>(std::min(count, tensor.element_count())))) {
    texts.push_back(AsText(value));
  }
  return texts;
}

}  // namespace

std::vector<std::string> FirstValues(const client::HostTensor& tensor, int64_t count) {
  const client::HostTensor in_sequence = tensor.InOrder(client::MemoryOrder::kRowMajor);
  switch (tensor.dtype()) {
    case client::DType::kBool:
      return FirstValuesOf<bool>(in_sequence, count);
    case client::DType::kI32:
      return FirstValuesOf<int32_t>(in_sequence, count);
    case client::DType::kI64:
      return FirstValuesOf<int64_t>(in_sequence, count);
    case client::DType::kF32:
      return FirstValuesOf<float>(in_sequence, count);
    case client::DType::kF64:
      return FirstValuesOf<double>(in_sequence, count);
    case client::DType::kC64:
      return FirstValuesOf<std::complex<float>>(in_sequence, count);
    case client::DType::kC128:
      return FirstValuesOf<std::complex<double>>(in_sequence, count);
    case client::DType::kF16:
      return FirstValuesOf<client::Half>(in_sequence, count);
    case client::DType::kBF16:
      return FirstValuesOf<client::BFloat16>(in_sequence, count);
  }
  return {};
}

std::string Summarize(const client::HostTensor& tensor) {
  return absl::StrCat(client::DTypeName(tensor.dtype()), client::ShapeToString(tensor.shape()), " ",
                      absl::StrJoin(FirstValues(tensor, kShownValues), ", "),
                      tensor.element_count() > kShownValues ? ", …" : "");
}

}  // namespace tensord::cli
