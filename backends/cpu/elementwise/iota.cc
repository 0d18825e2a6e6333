#include "backends/cpu/elementwise/iota.h"

#include <algorithm>

#include "engine/ops/scalar/scalar_math.h"

namespace tensord::cpu {
namespace {

// size and repeat are positive.
template <typename T>
void FillAs(int64_t begin, int64_t end, int64_t repeat, int64_t size, T* out) {
  int64_t value = begin / repeat % size;
  if (repeat == 1) {
    for (int64_t i = begin; i < end;) {
      const int64_t run = std::min(end - i, size - value);
      for (int64_t k = 0; k < run; ++k) out[k] = scalar::ConvertElement<T>(value + k);
      out += run;
      i += run;
      value = 0;
    }
    return;
  }
  int64_t left = repeat - begin % repeat;
  for (int64_t i = begin; i < end;) {
    const int64_t run = std::min(end - i, left);
    std::fill_n(out, run, scalar::ConvertElement<T>(value));
    out += run;
    i += run;
    left = repeat;
    value = value + 1 == size ? 0 : value + 1;
  }
}

}  // namespace

Iota::Iota(const ConcreteType& type, int64_t axis) : dtype_(type.dtype), size_(type.shape[static_cast<size_t>(axis)]) {
  for (int64_t i = 0; i < axis; ++i) repeat_ *= type.shape[static_cast<size_t>(i)];
}

void Iota::Fill(int64_t begin, int64_t end, void* out) const {
  if (begin >= end) return;
  VisitDType(dtype_, [&]<typename T>(TypeTag<T>) { FillAs(begin, end, repeat_, size_, static_cast<T*>(out)); });
}

}  // namespace tensord::cpu
