#include "clients/cli/files/tensor_summary.h"

#include <algorithm>
#include <charconv>
#include <complex>
#include <system_error>
#include <vector>

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

using google::protobuf::Value;

Value NumberOf(double number) {
  Value value;
  value.set_number_value(number);
  return value;
}

// Returns the double with the fewest digits that is read as this float, which has no more of its own.
Value NumberOf(float number) {
  double shortest = 0;
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), number);
  return NumberOf(std::from_chars(text, end.ptr, shortest).ec == std::errc() ? shortest : double{number});
}

Value AsJson(bool element) {
  Value value;
  value.set_bool_value(element);
  return value;
}
Value AsJson(int64_t element) {
  constexpr int64_t kMostExact = int64_t{1} << 53;
  if (element >= -kMostExact && element <= kMostExact) return NumberOf(static_cast<double>(element));
  Value value;
  value.set_string_value(absl::StrCat(element));
  return value;
}
Value AsJson(int32_t element) { return NumberOf(static_cast<double>(element)); }
Value AsJson(float element) { return NumberOf(element); }
Value AsJson(double element) { return NumberOf(element); }
Value AsJson(client::Half element) { return NumberOf(element.ToFloat()); }
Value AsJson(client::BFloat16 element) { return NumberOf(element.ToFloat()); }
template <typename T>
Value AsJson(std::complex<T> element) {
  Value value;
  *value.mutable_list_value()->add_values() = NumberOf(element.real());
  *value.mutable_list_value()->add_values() = NumberOf(element.imag());
  return value;
}

template <typename T, typename Use>
void UseElements(const client::HostTensor& tensor, int64_t count, const Use& use) {
  const absl::StatusOr<absl::Span<const T>> elements = tensor.Values<T>();
  if (!elements.ok()) return;
  for (const T& element : elements->first(static_cast<size_t>(std::min(count, tensor.element_count())))) use(element);
}

// Hands the first elements in row-major sequence to `use`.
template <typename Use>
void ForFirstElements(const client::HostTensor& tensor, int64_t count, const Use& use) {
  const client::HostTensor in_sequence = tensor.InOrder(client::MemoryOrder::kRowMajor);
  switch (tensor.dtype()) {
    case client::DType::kBool:
      return UseElements<bool>(in_sequence, count, use);
    case client::DType::kI32:
      return UseElements<int32_t>(in_sequence, count, use);
    case client::DType::kI64:
      return UseElements<int64_t>(in_sequence, count, use);
    case client::DType::kF32:
      return UseElements<float>(in_sequence, count, use);
    case client::DType::kF64:
      return UseElements<double>(in_sequence, count, use);
    case client::DType::kC64:
      return UseElements<std::complex<float>>(in_sequence, count, use);
    case client::DType::kC128:
      return UseElements<std::complex<double>>(in_sequence, count, use);
    case client::DType::kF16:
      return UseElements<client::Half>(in_sequence, count, use);
    case client::DType::kBF16:
      return UseElements<client::BFloat16>(in_sequence, count, use);
  }
}

}  // namespace

google::protobuf::ListValue FirstValues(const client::HostTensor& tensor, int64_t count) {
  google::protobuf::ListValue values;
  ForFirstElements(tensor, count, [&values](auto element) { *values.add_values() = AsJson(element); });
  return values;
}

std::string Summarize(const client::HostTensor& tensor) {
  std::vector<std::string> texts;
  ForFirstElements(tensor, kShownValues, [&texts](auto element) { texts.push_back(AsText(element)); });
  return absl::StrCat(client::DTypeName(tensor.dtype()), client::ShapeToString(tensor.shape()), " ",
                      absl::StrJoin(texts, ", "), tensor.element_count() > kShownValues ? ", …" : "");
}

}  // namespace tensord::cli
