// cublasLt: products by the definition, with sums in a wider type. Arguments are checked as the documentation has them.

#include <algorithm>
#include <climits>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "tests/hostcuda/device_range.h"
#include "tests/hostcuda/handles.h"
#include "tests/hostcuda/host_calls.h"
#include "tests/hostcuda/host_context.h"
#include "tests/hostcuda/host_exports.h"
#include "tests/hostcuda/host_half.h"
#include "tests/hostcuda/host_streams.h"
#include "tests/hostcuda/library_objects.h"

namespace tensord::cuda {

struct BlasLtObject {};

struct BlasLtMatmulDescObject {
  int32_t compute_type = 0, scale_type = 0, pointer_mode = 0, transpose_a = 0, transpose_b = 0;
  uint32_t epilogue = kBlasLtEpilogueDefault;
  const void* bias = nullptr;  // one number a row of D
};

struct BlasLtMatrixLayoutObject {
  uint32_t type = 0;
  int32_t order = kBlasLtOrderColumns, batch = 1;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, batch_stride = 0;
};

struct BlasLtPreferenceObject {
  uint64_t max_workspace_bytes = 0;
  uint32_t reduction_schemes = UINT32_MAX;
  uint32_t alignments[4] = {256, 256, 256, 256};  // of A, B, C and D
};

namespace {

using host::Handles;

Handles<BlasLtObject>& BlasHandles() {
  static auto* const handles = new Handles<BlasLtObject>;
  return *handles;
}
Handles<BlasLtMatmulDescObject>& Descs() {
  static auto* const handles = new Handles<BlasLtMatmulDescObject>;
  return *handles;
}
Handles<BlasLtMatrixLayoutObject>& Layouts() {
  static auto* const handles = new Handles<BlasLtMatrixLayoutObject>;
  return *handles;
}
Handles<BlasLtPreferenceObject>& Preferences() {
  static auto* const handles = new Handles<BlasLtPreferenceObject>;
  return *handles;
}

// The bytes of an algorithm: those of this device, with the alignments that it counts on.
struct HostAlgorithm {
  uint64_t magic;
  uint32_t alignments[4];
  uint64_t workspace_bytes;
  uint32_t epilogue, bias_alignment;
};
static_assert(sizeof(HostAlgorithm) <= sizeof(BlasLtAlgorithm));
constexpr uint64_t kAlgorithmMagic = 0x54534f4844414c42;
constexpr uint64_t kWorkspaceBytes = 4096;
constexpr int32_t kMostBatch = 65535;  // NVIDIA's algorithms differ in it

size_t BytesOf(uint32_t type) {
  switch (type) {
    case kCudaReal16:
    case kCudaBrain16:
      return 2;
    case kCudaReal32:
      return 4;
    case kCudaReal64:
    case kCudaComplex32:
      return 8;
    case kCudaComplex64:
      return 16;
    default:
      return 0;
  }
}

template <typename T>
BlasResult SetValue(T* member, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return kBlasInvalidValue;
  std::memcpy(member, value, sizeof(T));
  return kBlasSuccess;
}

// The matrices of a product as they are checked: copies, since callers may destroy theirs.
struct Product {
  BlasLtMatmulDescObject desc;
  BlasLtMatrixLayoutObject a, b, c, d;
  uint64_t m() const { return d.rows; }
  uint64_t n() const { return d.columns; }
  bool has_bias() const { return desc.epilogue == kBlasLtEpilogueBias; }
  uint64_t k() const { return desc.transpose_a == kBlasNoTranspose ? a.columns : a.rows; }
};

bool IsSound(const BlasLtMatrixLayoutObject& x) {
  const uint64_t line = x.order == kBlasLtOrderColumns ? x.rows : x.columns;
  return BytesOf(x.type) > 0 && x.rows > 0 && x.columns > 0 && x.rows < INT32_MAX && x.columns < INT32_MAX &&
         x.leading >= static_cast<int64_t>(line) && x.batch >= 1;
}

bool IsTransposed(int32_t operation) { return operation != kBlasNoTranspose; }

// The types that cublasLt multiplies: of A and B, of C and D, and of the factors.
bool HasType(const Product& p) {
  const uint32_t in = p.a.type, out = p.d.type;
  const int compute = p.desc.compute_type, scale = p.desc.scale_type;
  if (in != p.b.type || p.c.type != out) return false;
  const bool is_single = compute == kBlasCompute32 || compute == kBlasCompute32Pedantic;
  const bool is_double = compute == kBlasCompute64 || compute == kBlasCompute64Pedantic;
  switch (in) {
    case kCudaReal16:
    case kCudaBrain16:
      return is_single && scale == kCudaReal32 && (out == in || out == kCudaReal32);
    case kCudaReal32:
    case kCudaComplex32:
      return is_single && scale == static_cast<int>(in) && out == in;
    default:
      return is_double && scale == static_cast<int>(in) && out == in;
  }
}

// A bias only where sums are F32 and the result is real. ReLU and GELU are left out: what they make of NaN, and how
// GELU rounds, is nowhere said.
bool HasEpilogue(const Product& p) {
  if (p.desc.epilogue == kBlasLtEpilogueDefault) return true;
  const bool is_single = p.desc.compute_type == kBlasCompute32 || p.desc.compute_type == kBlasCompute32Pedantic;
  return p.has_bias() && is_single && p.d.type != kCudaComplex32 && p.d.order == kBlasLtOrderColumns;
}

// The heuristic counts on the alignment of the bias that it is shown.
uint32_t AlignmentOfBias(const Product& p) {
  const auto address = reinterpret_cast<uintptr_t>(p.desc.bias);
  return address == 0 ? 256 : static_cast<uint32_t>(std::min<uintptr_t>(address & -address, 256));
}

BlasResult Check(const Product& p) {
  if (!IsSound(p.a) || !IsSound(p.b) || !IsSound(p.c) || !IsSound(p.d)) return kBlasInvalidValue;
  if (p.desc.pointer_mode != 0 || !HasEpilogue(p)) return kBlasNotSupported;
  const uint64_t a_rows = IsTransposed(p.desc.transpose_a) ? p.a.columns : p.a.rows;
  const uint64_t b_rows = IsTransposed(p.desc.transpose_b) ? p.b.columns : p.b.rows;
  const uint64_t b_columns = IsTransposed(p.desc.transpose_b) ? p.b.rows : p.b.columns;
  if (a_rows != p.m() || b_rows != p.k() || b_columns != p.n()) return kBlasInvalidValue;
  if (p.c.rows != p.m() || p.c.columns != p.n() || p.c.order != p.d.order) return kBlasInvalidValue;
  if (p.a.batch != p.d.batch || p.b.batch != p.d.batch || p.c.batch != p.d.batch) return kBlasInvalidValue;
  if (p.d.batch > kMostBatch) return kBlasNotSupported;
  return HasType(p) ? kBlasSuccess : kBlasNotSupported;
}

// Finds the objects of a product; false if some handle is none.
bool FindProduct(BlasLtMatmulDesc desc, BlasLtMatrixLayout a, BlasLtMatrixLayout b, BlasLtMatrixLayout c,
                 BlasLtMatrixLayout d, Product* product) {
  const auto found_desc = Descs().Find(desc);
  const auto found_a = Layouts().Find(a), found_b = Layouts().Find(b), found_c = Layouts().Find(c);
  const auto found_d = Layouts().Find(d);
  if (found_desc == nullptr || found_a == nullptr || found_b == nullptr || found_c == nullptr || found_d == nullptr) {
    return false;
  }
  *product = {*found_desc, *found_a, *found_b, *found_c, *found_d};
  return true;
}

// Returns the bytes of a matrix in device memory, all of its batches; null if they are not all there.
char* Reveal(const BlasLtMatrixLayoutObject& x, const void* pointer, uint32_t alignment) {
  const auto lines = static_cast<int64_t>(x.order == kBlasLtOrderColumns ? x.columns : x.rows);
  const auto line = static_cast<int64_t>(x.order == kBlasLtOrderColumns ? x.rows : x.columns);
  const int64_t stride = x.batch > 1 ? x.batch_stride : 0;
  if (stride < 0) return nullptr;
  const auto elements = static_cast<size_t>((x.batch - 1) * stride + (lines - 1) * x.leading + line);
  return host::RevealRange(pointer, elements * BytesOf(x.type), alignment);
}

int64_t OffsetOf(const BlasLtMatrixLayoutObject& x, int64_t batch, int64_t row, int64_t column) {
  const bool is_columns = x.order == kBlasLtOrderColumns;
  return batch * x.batch_stride + (is_columns ? row + column * x.leading : column + row * x.leading);
}

template <typename Wide>
Wide Conjugate(Wide x) {
  if constexpr (requires { x.imag(); }) {
    return std::conj(x);
  } else {
    return x;
  }
}

// D = alpha op(A) op(B) + beta C + bias. C is not read where beta is 0: it may be anything. The bias is added in the
// type of the factors.
template <typename In, typename Out, typename Scale, typename Wide>
void Multiply(const Product& p, Scale alpha, const In* a, const In* b, Scale beta, const Out* c, const Out* bias,
              Out* d) {
  const auto m = static_cast<int64_t>(p.m()), n = static_cast<int64_t>(p.n()), k = static_cast<int64_t>(p.k());
  const auto at = [](const BlasLtMatrixLayoutObject& x, const In* data, int32_t operation, int64_t batch, int64_t i,
                     int64_t j) {
    const Wide value = Wide(data[IsTransposed(operation) ? OffsetOf(x, batch, j, i) : OffsetOf(x, batch, i, j)]);
    return operation == kBlasConjugateTranspose ? Conjugate(value) : value;
  };
  for (int64_t q = 0; q < p.d.batch; ++q) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < m; ++i) {
        Wide sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += at(p.a, a, p.desc.transpose_a, q, i, l) * at(p.b, b, p.desc.transpose_b, q, l, j);
        }
        Wide value = Wide(alpha) * sum;
        if (beta != Scale(0)) value += Wide(beta) * Wide(c[OffsetOf(p.c, q, i, j)]);
        d[OffsetOf(p.d, q, i, j)] = bias == nullptr ? Out(value) : Out(Scale(value) + Scale(Wide(bias[i])));
      }
    }
  }
}

// Calls `f.template operator()<In, Out, Scale, Wide>()` with the types of a product.
template <typename F>
void VisitTypes(const Product& p, const F& f) {
  const bool widens = p.d.type == kCudaReal32;
  switch (p.a.type) {
    case kCudaReal16:
      return widens ? f.template operator()<host::Half, float, float, double>()
                    : f.template operator()<host::Half, host::Half, float, double>();
    case kCudaBrain16:
      return widens ? f.template operator()<host::Brain, float, float, double>()
                    : f.template operator()<host::Brain, host::Brain, float, double>();
    case kCudaReal32:
      return f.template operator()<float, float, float, double>();
    case kCudaReal64:
      return f.template operator()<double, double, double, long double>();
    case kCudaComplex32:
      return f
          .template operator()<std::complex<float>, std::complex<float>, std::complex<float>, std::complex<double>>();
    default:
      return f.template
      operator()<std::complex<double>, std::complex<double>, std::complex<double>, std::complex<long double>>();
  }
}

}  // namespace

// Begins a call of cublasLt.
#define HOST_ENTER_BLAS()                                                                                            \
  if (const int injected = host::Calls::Get().Count(__func__, kBlasExecutionFailed); injected != 0) return injected; \
  if (!host::Context::Get().is_current()) return kBlasNotInitialized

// Makes what it has on the device, as no capture allows.
HOST_CUDA_EXPORT BlasResult cublasLtCreate(BlasLtHandle* handle) {
  HOST_ENTER_BLAS();
  if (host::CaptureForbids()) return kBlasNotInitialized;
  *handle = BlasHandles().Add(std::make_shared<BlasLtObject>());
  return kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasLtDestroy(BlasLtHandle handle) {
  HOST_ENTER_BLAS();
  return BlasHandles().Take(handle) == nullptr ? kBlasNotInitialized : kBlasSuccess;
}
HOST_CUDA_EXPORT size_t cublasLtGetVersion() { return 130000; }
HOST_CUDA_EXPORT const char* cublasLtGetStatusName(BlasResult result) {
  switch (result) {
    case kBlasSuccess:
      return "CUBLAS_STATUS_SUCCESS";
    case kBlasNotInitialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case kBlasAllocFailed:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case kBlasInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kBlasExecutionFailed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case kBlasArchitectureMismatch:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case kBlasNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}

HOST_CUDA_EXPORT BlasResult cublasLtMatmulDescCreate(BlasLtMatmulDesc* desc, int compute_type, int scale_type) {
  HOST_ENTER_BLAS();
  auto made = std::make_shared<BlasLtMatmulDescObject>();
  made->compute_type = compute_type;
  made->scale_type = scale_type;
  *desc = Descs().Add(std::move(made));
  return kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasLtMatmulDescDestroy(BlasLtMatmulDesc desc) {
  HOST_ENTER_BLAS();
  return Descs().Take(desc) == nullptr ? kBlasInvalidValue : kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasLtMatmulDescSetAttribute(BlasLtMatmulDesc handle, int attribute, const void* value,
                                                           size_t bytes) {
  HOST_ENTER_BLAS();
  const auto desc = Descs().Find(handle);
  if (desc == nullptr) return kBlasInvalidValue;
  switch (attribute) {
    case kBlasLtDescComputeType:
      return SetValue(&desc->compute_type, value, bytes);
    case kBlasLtDescScaleType:
      return SetValue(&desc->scale_type, value, bytes);
    case kBlasLtDescPointerMode:
      return SetValue(&desc->pointer_mode, value, bytes);
    case kBlasLtDescTransposeA:
      return SetValue(&desc->transpose_a, value, bytes);
    case kBlasLtDescTransposeB:
      return SetValue(&desc->transpose_b, value, bytes);
    case kBlasLtDescEpilogue:
      return SetValue(&desc->epilogue, value, bytes);
    case kBlasLtDescBiasPointer:
      return SetValue(&desc->bias, value, bytes);
    default:
      return kBlasInvalidValue;
  }
}

HOST_CUDA_EXPORT BlasResult cublasLtMatrixLayoutCreate(BlasLtMatrixLayout* layout, int type, uint64_t rows,
                                                       uint64_t columns, int64_t leading) {
  HOST_ENTER_BLAS();
  auto made = std::make_shared<BlasLtMatrixLayoutObject>();
  made->type = static_cast<uint32_t>(type);
  made->rows = rows;
  made->columns = columns;
  made->leading = leading;
  *layout = Layouts().Add(std::move(made));
  return kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasLtMatrixLayoutDestroy(BlasLtMatrixLayout layout) {
  HOST_ENTER_BLAS();
  return Layouts().Take(layout) == nullptr ? kBlasInvalidValue : kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasLtMatrixLayoutSetAttribute(BlasLtMatrixLayout handle, int attribute,
                                                             const void* value, size_t bytes) {
  HOST_ENTER_BLAS();
  const auto layout = Layouts().Find(handle);
  if (layout == nullptr) return kBlasInvalidValue;
  switch (attribute) {
    case kBlasLtLayoutType:
      return SetValue(&layout->type, value, bytes);
    case kBlasLtLayoutOrder:
      return SetValue(&layout->order, value, bytes);
    case kBlasLtLayoutRows:
      return SetValue(&layout->rows, value, bytes);
    case kBlasLtLayoutColumns:
      return SetValue(&layout->columns, value, bytes);
    case kBlasLtLayoutLeading:
      return SetValue(&layout->leading, value, bytes);
    case kBlasLtLayoutBatch:
      return SetValue(&layout->batch, value, bytes);
    case kBlasLtLayoutBatchStride:
      return SetValue(&layout->batch_stride, value, bytes);
    default:
      return kBlasInvalidValue;
  }
}

HOST_CUDA_EXPORT BlasResult cublasLtMatmulPreferenceCreate(BlasLtPreference* preference) {
  HOST_ENTER_BLAS();
  *preference = Preferences().Add(std::make_shared<BlasLtPreferenceObject>());
  return kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasLtMatmulPreferenceDestroy(BlasLtPreference preference) {
  HOST_ENTER_BLAS();
  return Preferences().Take(preference) == nullptr ? kBlasInvalidValue : kBlasSuccess;
}
HOST_CUDA_EXPORT BlasResult cublasLtMatmulPreferenceSetAttribute(BlasLtPreference handle, int attribute,
                                                                 const void* value, size_t bytes) {
  HOST_ENTER_BLAS();
  const auto preference = Preferences().Find(handle);
  if (preference == nullptr) return kBlasInvalidValue;
  switch (attribute) {
    case kBlasLtPreferMaxWorkspaceBytes:
      return SetValue(&preference->max_workspace_bytes, value, bytes);
    case kBlasLtPreferReductionSchemes:
      return SetValue(&preference->reduction_schemes, value, bytes);
    case kBlasLtPreferAlignmentA:
    case kBlasLtPreferAlignmentB:
    case kBlasLtPreferAlignmentC:
    case kBlasLtPreferAlignmentD:
      return SetValue(&preference->alignments[attribute - kBlasLtPreferAlignmentA], value, bytes);
    default:
      return kBlasInvalidValue;
  }
}

// One algorithm, with a workspace if there may be one: it fills all that it asked for.
HOST_CUDA_EXPORT BlasResult cublasLtMatmulAlgoGetHeuristic(BlasLtHandle handle, BlasLtMatmulDesc desc,
                                                           BlasLtMatrixLayout a, BlasLtMatrixLayout b,
                                                           BlasLtMatrixLayout c, BlasLtMatrixLayout d,
                                                           BlasLtPreference preference_handle, int wanted,
                                                           BlasLtHeuristic* results, int* found) {
  HOST_ENTER_BLAS();
  Product product;
  const auto preference = Preferences().Find(preference_handle);
  if (BlasHandles().Find(handle) == nullptr || preference == nullptr || !FindProduct(desc, a, b, c, d, &product) ||
      wanted < 1) {
    return kBlasInvalidValue;
  }
  *found = 0;
  if (const BlasResult result = Check(product); result != kBlasSuccess) return result;
  HostAlgorithm algorithm = {};
  algorithm.magic = kAlgorithmMagic;
  std::copy(std::begin(preference->alignments), std::end(preference->alignments), algorithm.alignments);
  algorithm.epilogue = product.desc.epilogue;
  algorithm.bias_alignment = AlignmentOfBias(product);
  algorithm.workspace_bytes = preference->max_workspace_bytes >= kWorkspaceBytes ? kWorkspaceBytes : 0;
  results[0] = {};
  std::memcpy(&results[0].algorithm, &algorithm, sizeof(algorithm));
  results[0].workspace_bytes = algorithm.workspace_bytes;
  results[0].state = kBlasSuccess;
  results[0].waves = 1;
  *found = 1;
  return kBlasSuccess;
}

// Factors are the host's, and read at once. The algorithm is one that GetHeuristic gave.
HOST_CUDA_EXPORT BlasResult cublasLtMatmul(BlasLtHandle handle, BlasLtMatmulDesc desc, const void* alpha, const void* a,
                                           BlasLtMatrixLayout a_layout, const void* b, BlasLtMatrixLayout b_layout,
                                           const void* beta, const void* c, BlasLtMatrixLayout c_layout, void* d,
                                           BlasLtMatrixLayout d_layout, const BlasLtAlgorithm* algorithm,
                                           void* workspace, size_t workspace_bytes, CuStream stream_handle) {
  HOST_ENTER_BLAS();
  Product product;
  const auto stream = host::Streams().Find(stream_handle);
  if (BlasHandles().Find(handle) == nullptr || stream == nullptr || alpha == nullptr || beta == nullptr ||
      algorithm == nullptr || !FindProduct(desc, a_layout, b_layout, c_layout, d_layout, &product)) {
    return kBlasInvalidValue;
  }
  HostAlgorithm chosen;
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  if (chosen.magic != kAlgorithmMagic || workspace_bytes < chosen.workspace_bytes) return kBlasInvalidValue;
  if (chosen.epilogue != product.desc.epilogue) return kBlasInvalidValue;
  if (const BlasResult result = Check(product); result != kBlasSuccess) return result;
  const char* const from_a = Reveal(product.a, a, chosen.alignments[0]);
  const char* const from_b = Reveal(product.b, b, chosen.alignments[1]);
  const char* const from_c = Reveal(product.c, c, chosen.alignments[2]);
  char* const to = Reveal(product.d, d, chosen.alignments[3]);
  char* const work = chosen.workspace_bytes == 0
                         ? nullptr
                         : host::RevealRange(workspace, chosen.workspace_bytes, host::kWorkspaceAlignment);
  if (from_a == nullptr || from_b == nullptr || from_c == nullptr || to == nullptr) return kBlasInvalidValue;
  if (chosen.workspace_bytes > 0 && work == nullptr) return kBlasInvalidValue;
  const char* const bias =
      !product.has_bias() || product.desc.bias == nullptr
          ? nullptr
          : host::RevealRange(product.desc.bias, product.m() * BytesOf(product.d.type), chosen.bias_alignment);
  if (product.has_bias() && bias == nullptr) return kBlasInvalidValue;
  // In place, or beside each other.
  if (from_c == to && (product.c.leading != product.d.leading || product.c.batch_stride != product.d.batch_stride)) {
    return kBlasInvalidValue;
  }
  BlasResult result = kBlasSuccess;
  VisitTypes(product, [&]<typename In, typename Out, typename Scale, typename Wide>() {
    Scale factors[2];
    std::memcpy(&factors[0], alpha, sizeof(Scale));
    std::memcpy(&factors[1], beta, sizeof(Scale));
    const CuResult pushed = stream->Enqueue("cublasLtMatmul", [=, first = factors[0], second = factors[1]] {
      if (work != nullptr) std::memset(work, 0xA5, chosen.workspace_bytes);
      Multiply<In, Out, Scale, Wide>(product, first, reinterpret_cast<const In*>(from_a),
                                     reinterpret_cast<const In*>(from_b), second, reinterpret_cast<const Out*>(from_c),
                                     reinterpret_cast<const Out*>(bias), reinterpret_cast<Out*>(to));
    });
    if (pushed != kCuSuccess) result = kBlasExecutionFailed;
  });
  return result;
}

size_t host::LiveBlasLtObjects() {
  return BlasHandles().size() + Descs().size() + Layouts().size() + Preferences().size();
}

}  // namespace tensord::cuda
