// Removes the high frequencies from a batch of signals.
//
//   low_pass [TARGET]
#include <cmath>
#include <cstdio>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

Tensor LowPass(const Tensor& signals, int64_t cut) {
  const Tensor spectrum = Rfft(signals);
  const Tensor kept = Iota(DType::kI64, {spectrum.shape().back()}) < cut;
  return Irfft(Select(kept, spectrum, 0), -1, {.lengths = {signals.shape().back()}});
}

int main(int argc, char** argv) {
  const auto client = Client::Connect({.target = argc > 1 ? argv[1] : ""}).value();
  const Tensor times = 2 * M_PI / 1000 * Iota(DType::kF64, {1000});
  const Tensor pure = Cos((Iota(DType::kF64, {16, 1}) + 1) * times);
  const Tensor filtered = LowPass(pure + 0.3 * Sin(200 * times), 50);
  const double worst = EvalScalar<double>(*client, Max(Abs(filtered - pure))).value();
  std::printf("worst error %.3g\n", worst);
  return worst < 1e-12 ? 0 : 1;
}
