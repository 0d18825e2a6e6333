#include "clients/load/random_tensor.h"

#include <complex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensord/shape.h"

namespace tensord::load {
namespace {

// More than any machine's memory, and far from overflow.
constexpr int64_t kMostElements = int64_t{1} << 40;

template <typename T, typename Draw>
absl::StatusOr<client::HostTensor> Fill(int64_t count, const client::Shape& shape, const Draw& draw) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = draw();
  return client::HostTensor::FromVector(std::move(values), shape);
}

}  // namespace

absl::StatusOr<client::HostTensor> RandomTensor(client::DType dtype, const client::Shape& shape, SplitMix* random) {
  const absl::StatusOr<int64_t> count = client::ElementCount(shape);
  if (!count.ok()) return count.status();
  if (*count > kMostElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("too many elements for random values: ", *count, ", at most ", kMostElements));
  }
  const auto real = [random] { return static_cast<float>(2 * random->Fraction() - 1); };
  const auto wide = [random] { return 2 * random->Fraction() - 1; };
  const auto bits = [random] { return random->Next() >> 61; };
  switch (dtype) {
    case client::DType::kBool:
      return Fill<bool>(*count, shape, [&] { return bits() % 2 == 1; });
    case client::DType::kI32:
      return Fill<int32_t>(*count, shape, [&] { return static_cast<int32_t>(bits()); });
    case client::DType::kI64:
      return Fill<int64_t>(*count, shape, [&] { return static_cast<int64_t>(bits()); });
    case client::DType::kF32:
      return Fill<float>(*count, shape, real);
    case client::DType::kF64:
      return Fill<double>(*count, shape, wide);
    case client::DType::kC64:
      return Fill<std::complex<float>>(*count, shape, [&] { return std::complex<float>(real(), real()); });
    case client::DType::kC128:
      return Fill<std::complex<double>>(*count, shape, [&] { return std::complex<double>(wide(), wide()); });
    case client::DType::kF16:
      return Fill<client::Half>(*count, shape, [&] { return client::Half::FromFloat(real()); });
    case client::DType::kBF16:
      return Fill<client::BFloat16>(*count, shape, [&] { return client::BFloat16::FromFloat(real()); });
  }
  return absl::InvalidArgumentError("unknown dtype");
}

}  // namespace tensord::load
