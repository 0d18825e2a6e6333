#include "backends/cuda/kernels/strided_copy_text.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/prelude.h"
#include "engine/base/rounding.h"

namespace tensord::cuda {
namespace {

constexpr int kStridedCopyThreads = 256;

std::string CopiedTypeOf(DType dtype, CudaPrelude* prelude) {
  switch (dtype) {
    case DType::kF16:
      prelude->Use("F16");
      return "F16";
    case DType::kBF16:
      prelude->Use("BF16");
      return "BF16";
    case DType::kC64:
      prelude->Use("Complex");
      return "c64";
    case DType::kC128:
      prelude->Use("Complex");
      return "c128";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    default:
      return "u8";
  }
}

std::string CopiedValue(const StridedCopy& copy, const std::string& to, const std::string& value) {
  if (copy.from == copy.to) return value;
  if (copy.from == DType::kF16 || copy.from == DType::kBF16) return absl::StrCat("(", to, ")ToFloat(", value, ")");
  if (copy.to == DType::kC128) return absl::StrCat("c128{", value, ".re, ", value, ".im}");
  return absl::StrCat("(", to, ")", value);
}

}  // namespace

int64_t StridedCopy::num_elements() const {
  int64_t elements = 1;
  for (const Axis& axis : axes) elements *= axis.size;
  return elements;
}

KernelText StridedCopyText(const StridedCopy& copy, int64_t most_blocks) {
  const int64_t elements = copy.num_elements();
  if (elements == 0) return {};
  CudaPrelude prelude;
  prelude.Use("Types");
  const std::string from = CopiedTypeOf(copy.from, &prelude), to = CopiedTypeOf(copy.to, &prelude);
  const int64_t blocks = std::min(most_blocks, CeilDiv(elements, kStridedCopyThreads));
  // The last step of a thread goes past the end.
  const bool is_narrow = elements + blocks * kStridedCopyThreads <= std::numeric_limits<int32_t>::max();
  const absl::string_view index = is_narrow ? "u32" : "i64";
  std::string text = prelude.Text();
  absl::StrAppend(&text, "extern \"C\" __global__ void strided_copy(const ", from, "* __restrict__ from, ", to,
                  "* __restrict__ to) {\n  for (", index, " i = (", index, ")blockIdx.x * ", kStridedCopyThreads,
                  "u + threadIdx.x; i < ", elements, "; i += (", index, ")", blocks * kStridedCopyThreads,
                  ") {\n    [[maybe_unused]] ", index, " rest = i;\n    i64 at = 0;\n");
  for (size_t a = 0; a < copy.axes.size(); ++a) {
    const StridedCopy::Axis& axis = copy.axes[a];
    const bool is_last = a + 1 == copy.axes.size();
    if (axis.size == 1) continue;
    absl::StrAppend(&text, "    at += (i64)(rest", is_last ? "" : absl::StrCat(" % ", axis.size), ") * ", axis.stride,
                    "ll;\n");
    if (!is_last) absl::StrAppend(&text, "    rest /= ", axis.size, ";\n");
  }
  const std::string value = absl::StrCat("from[", copy.gathers ? "at" : "i", "]");
  absl::StrAppend(&text, "    to[", copy.gathers ? "i" : "at", "] = ", CopiedValue(copy, to, value), ";\n  }\n}\n");
  return {.source = std::move(text),
          .launches = {{.entry = "strided_copy", .blocks = blocks, .threads_per_block = kStridedCopyThreads}}};
}

}  // namespace tensord::cuda
