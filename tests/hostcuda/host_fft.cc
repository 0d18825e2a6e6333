// cuFFT: transforms by splitting off the smallest factor, in long double. Arguments are checked as the documentation
// has them.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tests/hostcuda/device_range.h"
#include "tests/hostcuda/host_calls.h"
#include "tests/hostcuda/host_context.h"
#include "tests/hostcuda/host_exports.h"
#include "tests/hostcuda/host_streams.h"
#include "tests/hostcuda/library_objects.h"

namespace tensord::cuda {
namespace {

using Wide = std::complex<long double>;

// How one side of a transform lies in memory.
struct Side {
  std::vector<int64_t> lengths, embed;
  int64_t stride = 1, distance = 0;

  int64_t OffsetOf(int64_t batch, int64_t element) const {
    int64_t offset = 0, scale = 1;
    for (size_t axis = lengths.size(); axis-- > 0;) {
      offset += element % lengths[axis] * scale;
      element /= lengths[axis];
      scale *= embed[axis];
    }
    return batch * distance + offset * stride;
  }
  int64_t num_elements() const {
    int64_t n = 1;
    for (int64_t length : lengths) n *= length;
    return n;
  }
  int64_t NeededElements(int64_t batch) const { return OffsetOf(batch - 1, num_elements() - 1) + 1; }
};

struct Plan {
  bool is_made = false, allocates = true;
  int type = 0;
  int64_t batch = 0;
  std::vector<int64_t> lengths;
  Side in, out;
  size_t work_bytes = 0;
  void* work = nullptr;
  CuStream stream = nullptr;
};

std::mutex g_mutex;
std::map<FftPlan, Plan> g_plans;
FftPlan g_next_plan = 1;

bool IsSingle(int type) { return type == kFftC2C || type == kFftR2C || type == kFftC2R; }
bool IsFromReal(int type) { return type == kFftR2C || type == kFftD2Z; }
bool IsToReal(int type) { return type == kFftC2R || type == kFftZ2D; }

// Returns a plan as it is now; nothing for a number that is none.
std::optional<Plan> FindPlan(FftPlan plan) {
  std::lock_guard lock(g_mutex);
  const auto it = g_plans.find(plan);
  return it == g_plans.end() ? std::nullopt : std::optional(it->second);
}

template <typename F>
FftResult ChangePlan(FftPlan plan, const F& change) {
  std::lock_guard lock(g_mutex);
  const auto it = g_plans.find(plan);
  if (it == g_plans.end()) return kFftInvalidPlan;
  return change(&it->second);
}

// x[k] = sum of x[j] roots[j k], of lines of n elements with a stride; roots are those of the whole transform.
void Transform(const std::vector<Wide>& roots, std::vector<Wide>* line) {
  const size_t n = line->size();
  if (n == 1) return;
  size_t factor = 2;
  while (n % factor != 0) ++factor;
  const size_t rest = n / factor, step = roots.size() / n;
  std::vector<std::vector<Wide>> parts(factor, std::vector<Wide>(rest));
  for (size_t i = 0; i < n; ++i) parts[i % factor][i / factor] = (*line)[i];
  for (std::vector<Wide>& part : parts) Transform(roots, &part);
  for (size_t k = 0; k < n; ++k) {
    Wide sum = 0;
    for (size_t f = 0; f < factor; ++f) sum += parts[f][k % rest] * roots[f * k % n * step];
    (*line)[k] = sum;
  }
}

// All axes of a dense array.
void TransformAxes(const std::vector<int64_t>& lengths, int direction, std::vector<Wide>* data) {
  size_t inner = data->size();
  for (int64_t signed_length : lengths) {
    const auto n = static_cast<size_t>(signed_length);
    inner /= n;
    std::vector<Wide> roots(n), line(n);
    for (size_t i = 0; i < n; ++i) {
      roots[i] = std::polar(1.0L, 2 * M_PIl * direction * static_cast<long double>(i) / static_cast<long double>(n));
    }
    for (size_t begin = 0; begin < data->size(); begin += n * inner) {
      for (size_t i = begin; i < begin + inner; ++i) {
        for (size_t j = 0; j < n; ++j) line[j] = (*data)[i + j * inner];
        Transform(roots, &line);
        for (size_t j = 0; j < n; ++j) (*data)[i + j * inner] = line[j];
      }
    }
  }
}

// Gives the second half of a spectrum of real numbers: the conjugate of the first at the mirrored index.
Wide MirroredElement(const Plan& plan, const std::vector<Wide>& half, int64_t element) {
  std::vector<int64_t> index(plan.lengths.size());
  for (size_t axis = index.size(); axis-- > 0;) {
    index[axis] = element % plan.lengths[axis];
    element /= plan.lengths[axis];
  }
  const bool is_mirrored = index.back() >= plan.in.lengths.back();
  int64_t at = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) {
    const int64_t n = plan.lengths[axis];
    at = at * plan.in.lengths[axis] + (is_mirrored ? (n - index[axis]) % n : index[axis]);
  }
  const Wide value = half[static_cast<size_t>(at)];
  return is_mirrored ? std::conj(value) : value;
}

template <typename R>
void Run(const Plan& plan, int direction, char* in, char* out) {
  const int64_t points = plan.in.num_elements();
  for (int64_t b = 0; b < plan.batch; ++b) {
    std::vector<Wide> data(static_cast<size_t>(points));
    for (int64_t i = 0; i < points; ++i) {
      const int64_t at = plan.in.OffsetOf(b, i);
      data[static_cast<size_t>(i)] = IsFromReal(plan.type) ? Wide(reinterpret_cast<const R*>(in)[at])
                                                           : Wide(reinterpret_cast<const std::complex<R>*>(in)[at]);
    }
    if (IsToReal(plan.type)) {
      const std::vector<Wide> half = data;
      data.resize(static_cast<size_t>(plan.out.num_elements()));
      for (size_t i = 0; i < data.size(); ++i) data[i] = MirroredElement(plan, half, static_cast<int64_t>(i));
      // Its input is lost, as documented.
      for (int64_t i = 0; i < points; ++i) {
        reinterpret_cast<std::complex<R>*>(in)[plan.in.OffsetOf(b, i)] = std::complex<R>(-77, 77);
      }
    }
    TransformAxes(plan.lengths, direction, &data);
    const int64_t results = plan.out.num_elements();
    for (int64_t i = 0; i < results; ++i) {
      // Of a spectrum of real numbers the first half of the last axis.
      const int64_t line = plan.out.lengths.back();
      const int64_t from = IsFromReal(plan.type) ? i / line * plan.lengths.back() + i % line : i;
      const Wide value = data[static_cast<size_t>(from)];
      const int64_t at = plan.out.OffsetOf(b, i);
      if (IsToReal(plan.type)) {
        reinterpret_cast<R*>(out)[at] = static_cast<R>(value.real());
      } else {
        reinterpret_cast<std::complex<R>*>(out)[at] = std::complex<R>(value);
      }
    }
  }
}

// Reads a side's arguments; without `embed` it is dense, and the others are not looked at.
Side SideOf(const std::vector<int64_t>& lengths, const long long* embed, long long stride, long long distance) {
  Side side = {.lengths = lengths, .embed = lengths, .stride = 1, .distance = 0};
  side.distance = side.num_elements();
  if (embed == nullptr) return side;
  side.embed.assign(embed, embed + lengths.size());
  side.stride = stride;
  side.distance = distance;
  return side;
}

size_t ElementBytes(int type, bool is_real) { return (IsSingle(type) ? 4u : 8u) * (is_real ? 1u : 2u); }

}  // namespace

#define HOST_ENTER_FFT()                                                                                       \
  if (const int injected = host::Calls::Get().Count(__func__, kFftExecFailed); injected != 0) return injected; \
  if (!host::Context::Get().is_current()) return kFftInvalidPlan

HOST_CUDA_EXPORT FftResult cufftGetVersion(int* version) {
  if (const int injected = host::Calls::Get().Count(__func__, kFftExecFailed); injected != 0) return injected;
  *version = 12000;
  return kFftSuccess;
}

HOST_CUDA_EXPORT FftResult cufftCreate(FftPlan* plan) {
  HOST_ENTER_FFT();
  std::lock_guard lock(g_mutex);
  *plan = g_next_plan++;
  g_plans[*plan] = {};
  return kFftSuccess;
}

HOST_CUDA_EXPORT FftResult cufftDestroy(FftPlan plan) {
  HOST_ENTER_FFT();
  std::lock_guard lock(g_mutex);
  return g_plans.erase(plan) == 0 ? kFftInvalidPlan : kFftSuccess;
}

HOST_CUDA_EXPORT FftResult cufftSetAutoAllocation(FftPlan plan, int is_automatic) {
  HOST_ENTER_FFT();
  return ChangePlan(plan, [=](Plan* p) {
    if (p->is_made) return kFftInvalidPlan;
    p->allocates = is_automatic != 0;
    return kFftSuccess;
  });
}

HOST_CUDA_EXPORT FftResult cufftMakePlanMany64(FftPlan plan, int rank, long long* lengths, long long* in_embed,
                                               long long in_stride, long long in_distance, long long* out_embed,
                                               long long out_stride, long long out_distance, int type, long long batch,
                                               size_t* work_bytes) {
  HOST_ENTER_FFT();
  if (rank < 1 || rank > 3 || batch < 1) return kFftInvalidValue;
  if ((in_embed == nullptr) != (out_embed == nullptr)) return kFftInvalidValue;
  for (int axis = 0; axis < rank; ++axis) {
    if (lengths[axis] < 1) return kFftInvalidSize;
  }
  const int known[] = {kFftC2C, kFftR2C, kFftC2R, kFftZ2Z, kFftD2Z, kFftZ2D};
  if (std::find(std::begin(known), std::end(known), type) == std::end(known)) return kFftInvalidValue;
  return ChangePlan(plan, [=](Plan* p) {
    if (p->is_made) return kFftInvalidPlan;
    p->type = type;
    p->batch = batch;
    p->lengths.assign(lengths, lengths + rank);
    std::vector<int64_t> half = p->lengths;
    half.back() = half.back() / 2 + 1;
    p->in = SideOf(IsToReal(type) ? half : p->lengths, in_embed, in_stride, in_distance);
    p->out = SideOf(IsFromReal(type) ? half : p->lengths, out_embed, out_stride, out_distance);
    for (const Side* side : {&p->in, &p->out}) {
      if (side->stride < 1 || (batch > 1 && side->distance < 1)) return kFftInvalidValue;
      for (size_t axis = 1; axis < side->embed.size(); ++axis) {
        if (side->embed[axis] < side->lengths[axis]) return kFftInvalidSize;
      }
    }
    p->work_bytes = static_cast<size_t>(p->out.num_elements()) * 8;
    *work_bytes = p->work_bytes;
    p->is_made = true;
    return kFftSuccess;
  });
}

HOST_CUDA_EXPORT FftResult cufftSetWorkArea(FftPlan plan, void* work) {
  HOST_ENTER_FFT();
  return ChangePlan(plan, [=](Plan* p) {
    p->work = work;
    return kFftSuccess;
  });
}

HOST_CUDA_EXPORT FftResult cufftSetStream(FftPlan plan, CuStream stream) {
  HOST_ENTER_FFT();
  return ChangePlan(plan, [=](Plan* p) {
    p->stream = stream;
    return kFftSuccess;
  });
}

// The direction is not looked at where one side is real.
HOST_CUDA_EXPORT FftResult cufftXtExec(FftPlan handle, void* in, void* out, int direction) {
  HOST_ENTER_FFT();
  const std::optional<Plan> plan = FindPlan(handle);
  if (!plan.has_value() || !plan->is_made) return kFftInvalidPlan;
  const auto stream = host::Streams().Find(plan->stream);
  if (stream == nullptr) return kFftInvalidValue;
  if (IsFromReal(plan->type)) direction = kFftForward;
  if (IsToReal(plan->type)) direction = kFftInverse;
  if (direction != kFftForward && direction != kFftInverse) return kFftInvalidValue;
  const size_t in_bytes = ElementBytes(plan->type, IsFromReal(plan->type));
  const size_t out_bytes = ElementBytes(plan->type, IsToReal(plan->type));
  const size_t complex_bytes = ElementBytes(plan->type, false);
  char* const from =
      host::RevealRange(in, static_cast<size_t>(plan->in.NeededElements(plan->batch)) * in_bytes, complex_bytes);
  char* const to =
      host::RevealRange(out, static_cast<size_t>(plan->out.NeededElements(plan->batch)) * out_bytes, complex_bytes);
  if (from == nullptr || to == nullptr) return kFftInvalidValue;
  char* work = nullptr;
  if (!plan->allocates) {
    work = host::RevealRange(plan->work, plan->work_bytes, host::kWorkspaceAlignment);
    if (work == nullptr) return kFftInvalidValue;
  }
  auto shared = std::make_shared<const Plan>(*plan);
  const CuResult pushed = stream->Enqueue("cufftXtExec", [=] {
    if (work != nullptr) std::memset(work, 0xA5, shared->work_bytes);
    IsSingle(shared->type) ? Run<float>(*shared, direction, from, to) : Run<double>(*shared, direction, from, to);
  });
  return pushed == kCuSuccess ? kFftSuccess : kFftExecFailed;
}

size_t host::LiveFftPlans() {
  std::lock_guard lock(g_mutex);
  return g_plans.size();
}

}  // namespace tensord::cuda
