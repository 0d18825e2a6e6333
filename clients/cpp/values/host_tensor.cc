#include "tensord/host_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tensord::client {
namespace {

static_assert(std::endian::native == std::endian::little, "elements cross the wire as they lie in memory");

std::shared_ptr<char> Allocate(size_t size_bytes) {
  return std::shared_ptr<char>(new char[size_bytes], std::default_delete<char[]>());
}

bool IsAligned(const char* bytes, DType dtype) {
  const size_t alignment = static_cast<size_t>(std::min<int64_t>(SizeInBytes(dtype), alignof(double)));
  return reinterpret_cast<uintptr_t>(bytes) % alignment == 0;
}

// An axis of the source while its elements are walked.
struct WalkedAxis {
  int64_t size;
  int64_t target_stride;
  int64_t index;
};

// Copies elements of `kSize` bytes so that the axis order of the buffer is reversed. `dims` has the source's fastest
// axis first.
template <size_t kSize>
void ReverseAxes(const char* source, const Shape& dims, char* target) {
  std::vector<WalkedAxis> axes;
  for (int64_t dim : dims) axes.push_back({.size = dim, .target_stride = 1, .index = 0});
  int64_t count = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    axis->target_stride = count;
    count *= axis->size;
  }
  int64_t offset = 0;
  for (int64_t element = 0; element < count; ++element) {
    std::memcpy(target + offset * static_cast<int64_t>(kSize), source + element * static_cast<int64_t>(kSize), kSize);
    for (WalkedAxis& axis : axes) {
      offset += axis.target_stride;
      if (++axis.index < axis.size) break;
      offset -= axis.target_stride * axis.size;
      axis.index = 0;
    }
  }
}

}  // namespace

absl::StatusOr<HostTensor> HostTensor::FromBytes(DType dtype, Shape shape, MemoryOrder order, std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  return FromBuffer(dtype, std::move(shape), order, std::shared_ptr<const char>(owner, owner->data()), owner->size());
}

absl::StatusOr<HostTensor> HostTensor::FromBuffer(DType dtype, Shape shape, MemoryOrder order,
                                                  std::shared_ptr<const char> bytes, size_t size_bytes) {
  absl::StatusOr<int64_t> element_count = ElementCount(shape);
  if (!element_count.ok()) return element_count.status();
  int64_t wanted_bytes;
  if (__builtin_mul_overflow(*element_count, SizeInBytes(dtype), &wanted_bytes) ||
      static_cast<uint64_t>(wanted_bytes) != size_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("buffer does not fit the tensor: ", DTypeName(dtype),
                                                   ShapeToString(shape), ", ", size_bytes, " bytes"));
  }
  if (bytes == nullptr && size_bytes > 0) {
    return absl::InvalidArgumentError(absl::StrCat("there is no buffer, and the tensor has ", size_bytes, " bytes"));
  }
  if (dtype == DType::kBool) {
    for (size_t i = 0; i < size_bytes; ++i) {
      const auto byte = static_cast<unsigned char>(bytes.get()[i]);
      if (byte > 1) {
        return absl::InvalidArgumentError(absl::StrCat("a bool is neither 0 nor 1: ", byte, " at element ", i));
      }
    }
  }
  if (!IsAligned(bytes.get(), dtype)) {
    std::shared_ptr<char> copy = Allocate(size_bytes);
    std::memcpy(copy.get(), bytes.get(), size_bytes);
    bytes = std::move(copy);
  }
  HostTensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.order_ = order;
  tensor.element_count_ = *element_count;
  tensor.size_bytes_ = size_bytes;
  tensor.bytes_ = std::move(bytes);
  return tensor;
}

HostTensor HostTensor::InOrder(MemoryOrder order) const {
  HostTensor result = *this;
  result.order_ = order;
  if (order == order_ || shape_.size() < 2 || element_count_ == 0) return result;

  // Fastest axis first, whichever end that is.
  Shape dims = shape_;
  if (order_ == MemoryOrder::kRowMajor) std::reverse(dims.begin(), dims.end());
  std::shared_ptr<char> reordered = Allocate(size_bytes_);
  switch (SizeInBytes(dtype_)) {
    case 1:
      ReverseAxes<1>(bytes(), dims, reordered.get());
      break;
    case 2:
      ReverseAxes<2>(bytes(), dims, reordered.get());
      break;
    case 4:
      ReverseAxes<4>(bytes(), dims, reordered.get());
      break;
    case 8:
      ReverseAxes<8>(bytes(), dims, reordered.get());
      break;
    default:
      ReverseAxes<16>(bytes(), dims, reordered.get());
      break;
  }
  result.bytes_ = std::move(reordered);
  return result;
}

absl::Status HostTensor::DTypeMismatch(DType wanted, DType actual) {
  return absl::InvalidArgumentError(
      absl::StrCat("values were asked for as another dtype: ", DTypeName(wanted), ", tensor is ", DTypeName(actual)));
}

absl::Status HostTensor::NoSingleElement() const {
  return absl::InvalidArgumentError(absl::StrCat("the only element was asked for of a tensor of ", element_count_,
                                                 " elements: ", DTypeName(dtype_), ShapeToString(shape_)));
}

}  // namespace tensord::client
