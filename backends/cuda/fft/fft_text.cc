#include "backends/cuda/fft/fft_text.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "backends/cuda/codegen/prelude.h"
#include "engine/base/rounding.h"

namespace tensord::cuda {
namespace {

constexpr int kThreads = 256;

bool IsComplex(DType dtype) { return dtype == DType::kC64 || dtype == DType::kC128; }

absl::string_view TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "f64";
    case DType::kC64:
      return "c64";
    case DType::kC128:
      return "c128";
    default:
      return "f32";
  }
}

// An entry that goes over all numbers of the lines: `i` is that of the number, `at` its place in the tensor.
KernelText Over(const FftAxis& axis, int64_t length, int64_t tensor_length, absl::string_view entry,
                absl::string_view parameters, absl::string_view body, int64_t most_blocks) {
  const int64_t elements = axis.lines * length;
  if (elements == 0) return {};
  CudaPrelude prelude;
  prelude.Use("Types");
  prelude.Use("Complex");
  const int64_t blocks = std::min(most_blocks, CeilDiv(elements, kThreads));
  std::string text = prelude.Text();
  absl::StrAppend(&text, "extern \"C\" __global__ void ", entry, "(", parameters,
                  ") {\n  for (i64 i = (i64)blockIdx.x * ", kThreads, " + threadIdx.x; i < ", elements,
                  "ll; i += ", blocks * kThreads, "ll) {\n    const i64 j = i % ", length, "ll, line = i / ", length,
                  "ll;\n    const i64 at = line % ", axis.inner, "ll + (j + line / ", axis.inner, "ll * ",
                  tensor_length, "ll) * ", axis.inner, "ll;\n", body, "  }\n}\n");
  return {.source = std::move(text),
          .launches = {{.entry = std::string(entry), .blocks = blocks, .threads_per_block = kThreads}}};
}

}  // namespace

KernelText FftLoadText(const FftLoad& load, int64_t most_blocks) {
  const absl::string_view from = TypeOf(load.from), to = TypeOf(load.to);
  std::string body = absl::StrCat("    ", to, " x = {};\n");
  const absl::string_view value = IsComplex(load.from) == IsComplex(load.to) ? "x = from[at]" : "x.re = from[at]";
  absl::StrAppend(&body, "    if (j < ", load.from_length, "ll) ", value, ";\n");
  if (load.real_length > 0 && IsComplex(load.to)) {
    const bool has_middle = load.real_length % 2 == 0;
    absl::StrAppend(&body, "    if (j == 0", has_middle ? absl::StrCat(" || j == ", load.real_length / 2, "ll") : "",
                    ") x.im = 0;\n");
  }
  absl::StrAppend(&body, "    to[i] = x;\n");
  return Over(load.axis, load.length, load.from_length, "fft_load",
              absl::StrCat("const ", from, "* __restrict__ from, ", to, "* __restrict__ to"), body, most_blocks);
}

KernelText FftStoreText(const FftStore& store, int64_t most_blocks) {
  const absl::string_view type = TypeOf(store.dtype);
  const bool is_single = store.dtype == DType::kF32 || store.dtype == DType::kC64;
  std::string body = absl::StrCat("    ", type, " x = from[i];\n");
  if (store.factor != 1) {
    const std::string factor = absl::StrFormat("(%s)%a", is_single ? "f32" : "f64", store.factor);
    absl::StrAppend(&body, IsComplex(store.dtype)
                               ? absl::StrCat("    x.re *= ", factor, ";\n    x.im *= ", factor, ";\n")
                               : absl::StrCat("    x *= ", factor, ";\n"));
  }
  absl::StrAppend(&body, "    to[at] = x;\n");
  return Over(store.axis, store.length, store.length, "fft_store",
              absl::StrCat("const ", type, "* from, ", type, "* to"), body, most_blocks);
}

}  // namespace tensord::cuda
