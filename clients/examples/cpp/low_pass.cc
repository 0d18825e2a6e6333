// Removes the high frequencies from a batch of signals.
//
//   low_pass [TARGET]
#include <cmath>
#include <cstdio>
#include <memory>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

namespace {

Tensor LowPass(const Tensor& signals, int64_t cut) {
  const Tensor spectrum = Rfft(signals);
  const Tensor kept = Iota(DType::kI64, {spectrum.shape().back()}) < cut;
  return Irfft(Select(kept, spectrum, 0.0), -1, {.lengths = {signals.shape().back()}});
}

absl::Status Run(Client& client) {
  constexpr int64_t kSignals = 16, kSamples = 1000;
  const Tensor times = 2 * M_PI / kSamples * Convert(Iota(DType::kI64, {kSamples}), DType::kF64);
  const Tensor pitch = Convert(Iota(DType::kI64, {kSignals, 1}), DType::kF64) + 1.0;
  const Tensor pure = Cos(pitch * times);
  const Tensor filtered = LowPass(pure + 0.3 * Sin(200.0 * times), 50);
  const absl::StatusOr<HostTensor> worst = Eval(client, Max(Abs(filtered - pure)));
  if (!worst.ok()) return worst.status();
  std::printf("worst error %.3g\n", (*worst->Values<double>())[0]);
  return (*worst->Values<double>())[0] < 1e-12 ? absl::OkStatus() : absl::InternalError("the filter leaks");
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = argc > 1 ? argv[1] : ""});
  const absl::Status status = client.ok() ? Run(**client) : client.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
