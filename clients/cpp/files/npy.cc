#include "tensord/npy.h"

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cpp/files/file.h"
#include "clients/cpp/files/npy_header.h"

namespace tensord::client {
namespace {

struct Descriptor {
  const char* text;
  DType dtype;
};

constexpr std::array<Descriptor, 9> kDescriptors = {{{"|b1", DType::kBool},
                                                     {"<i4", DType::kI32},
                                                     {"<i8", DType::kI64},
                                                     {"<f2", DType::kF16},
                                                     {"<V2", DType::kBF16},
                                                     {"<f4", DType::kF32},
                                                     {"<f8", DType::kF64},
                                                     {"<c8", DType::kC64},
                                                     {"<c16", DType::kC128}}};

// NumPy aligns the payload to this, so that a mapped file has aligned elements.
constexpr size_t kPayloadAlignment = 64;
// Of version 1: its 65,535 bytes of header are more than kMostAxes sizes take.
constexpr size_t kPrefixBytes = 10;

absl::StatusOr<DType> DTypeOfDescriptor(absl::string_view text) {
  // "=", the writer's own byte order, is little-endian on every machine that this runs on.
  if (!text.empty() && text.front() == '=') return DTypeOfDescriptor(absl::StrCat("<", text.substr(1)));
  for (const Descriptor& descriptor : kDescriptors) {
    if (text == descriptor.text) return descriptor.dtype;
  }
  // NumPy itself writes raw two-byte elements as |V2: they have no byte order.
  if (text == "|V2") return DType::kBF16;
  if (!text.empty() && text.front() == '>') {
    return absl::InvalidArgumentError(
        absl::StrCat("big-endian elements are not supported; convert with astype(\"<", text.substr(1), "\"): ", text));
  }
  return absl::InvalidArgumentError(absl::StrCat("no tensord dtype has these elements: descr ", text));
}

absl::string_view DescriptorOfDType(DType dtype) {
  for (const Descriptor& descriptor : kDescriptors) {
    if (descriptor.dtype == dtype) return descriptor.text;
  }
  return "";
}

absl::StatusOr<size_t> PayloadBytes(const NpyHeader& header) {
  const absl::StatusOr<DType> dtype = DTypeOfDescriptor(header.descriptor);
  if (!dtype.ok()) return dtype.status();
  const absl::StatusOr<int64_t> elements = ElementCount(header.shape);
  if (!elements.ok()) return elements.status();
  int64_t bytes;
  if (__builtin_mul_overflow(*elements, SizeInBytes(*dtype), &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the array has more bytes than 64 bits count: ", header.descriptor, ShapeToString(header.shape)));
  }
  return static_cast<size_t>(bytes);
}

absl::Status OtherLength(const NpyHeader& header, absl::string_view bytes) {
  return absl::InvalidArgumentError(absl::StrCat("the file's length does not fit its header: ", header.descriptor,
                                                 ShapeToString(header.shape), ", ", bytes, " bytes after the header"));
}

// The header first, and then as much as it says.
absl::StatusOr<std::string> ReadWhole(InputFile& file) {
  std::string contents;
  absl::Status read = file.Append(kNpyPrefixBytes, &contents);
  if (!read.ok()) return read;
  const absl::StatusOr<size_t> header_bytes = NpyHeaderBytes(contents);
  if (!header_bytes.ok()) return header_bytes.status();
  if (*header_bytes > contents.size()) read = file.Append(*header_bytes - contents.size(), &contents);
  if (!read.ok()) return read;
  const absl::StatusOr<NpyHeader> header = ParseNpyHeader(contents);
  if (!header.ok()) return header.status();
  const absl::StatusOr<size_t> payload_bytes = PayloadBytes(*header);
  if (!payload_bytes.ok()) return payload_bytes.status();
  const size_t size = *header_bytes + *payload_bytes;
  if (file.size() >= 0 && static_cast<uint64_t>(file.size()) != size) {
    return OtherLength(*header, absl::StrCat(file.size() - static_cast<int64_t>(*header_bytes)));
  }
  if (size > contents.size()) read = file.Append(size - contents.size(), &contents);
  if (!read.ok()) return read;
  read = file.Append(1, &contents);
  if (!read.ok()) return read;
  if (contents.size() > size) return OtherLength(*header, absl::StrCat("more than ", *payload_bytes));
  return contents;
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

}  // namespace

absl::StatusOr<HostTensor> ParseNpy(std::string contents) {
  absl::StatusOr<NpyHeader> header = ParseNpyHeader(contents);
  if (!header.ok()) return header.status();
  absl::StatusOr<DType> dtype = DTypeOfDescriptor(header->descriptor);
  if (!dtype.ok()) return dtype.status();
  const absl::StatusOr<size_t> wanted_bytes = PayloadBytes(*header);
  if (!wanted_bytes.ok()) return wanted_bytes.status();
  const size_t payload_bytes = contents.size() - header->size_bytes;
  if (*wanted_bytes != payload_bytes) return OtherLength(*header, absl::StrCat(payload_bytes));
  const MemoryOrder order = header->is_fortran_order ? MemoryOrder::kColumnMajor : MemoryOrder::kRowMajor;
  auto owner = std::make_shared<const std::string>(std::move(contents));
  std::shared_ptr<const char> payload(owner, owner->data() + header->size_bytes);
  return HostTensor::FromBuffer(*dtype, std::move(header->shape), order, std::move(payload), payload_bytes);
}

std::string FormatNpyHeader(const HostTensor& tensor) {
  // A tuple of one element needs its comma.
  const std::string shape =
      absl::StrCat("(", absl::StrJoin(tensor.shape(), ", "), tensor.shape().size() == 1 ? ",)" : ")");
  std::string dictionary =
      absl::StrCat("{'descr': '", DescriptorOfDType(tensor.dtype()),
                   "', 'fortran_order': ", tensor.order() == MemoryOrder::kColumnMajor ? "True" : "False",
                   ", 'shape': ", shape, ", }");
  const size_t unpadded_bytes = kPrefixBytes + dictionary.size() + 1;
  dictionary.append((kPayloadAlignment - unpadded_bytes % kPayloadAlignment) % kPayloadAlignment, ' ');
  dictionary.push_back('\n');

  std::string result = "\x93NUMPY";
  result.push_back('\x01');
  result.push_back('\x00');
  result.push_back(static_cast<char>(dictionary.size()));
  result.push_back(static_cast<char>(dictionary.size() >> 8));
  result += dictionary;
  return result;
}

std::string FormatNpy(const HostTensor& tensor) {
  std::string result = FormatNpyHeader(tensor);
  result.append(tensor.bytes(), tensor.size_bytes());
  return result;
}

absl::StatusOr<HostTensor> ReadNpy(const std::string& path) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::string> contents = ReadWhole(*file);
  if (absl::IsInvalidArgument(contents.status())) return InFile(path, contents.status());
  if (!contents.ok()) return contents.status();
  absl::StatusOr<HostTensor> tensor = ParseNpy(*std::move(contents));
  if (!tensor.ok()) return InFile(path, tensor.status());
  return tensor;
}

absl::Status WriteNpy(const std::string& path, const HostTensor& tensor) {
  const std::string header = FormatNpyHeader(tensor);
  const absl::string_view pieces[] = {header, {tensor.bytes(), tensor.size_bytes()}};
  return WriteFile(path, pieces);
}

}  // namespace tensord::client
