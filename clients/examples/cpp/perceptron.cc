// Two layers of neurons for batches of any size: one program, compiled once.
//
//   perceptron [TARGET]
#include <cmath>
#include <cstdio>
#include <memory>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

namespace {

absl::Status Run(Client& client) {
  const Tensor w1 = Full({4, 8}, 0.1, DType::kF32), b1 = Full({8}, 0.5, DType::kF32), w2 = Full({8, 2}, 1, DType::kF32);
  const auto model = Compile(
      client, [&](const Tensor& x) { return MatMul(Tanh(MatMul(x, w1) + b1), w2); },
      Spec<float>({Symbol("n"), 4}, "x"));
  if (!model.ok()) return model.status();
  const double expected = 8 * std::tanh(0.9);
  for (const int64_t n : {1, 7, 1000, 0}) {
    const absl::StatusOr<HostTensor> x =
        HostTensor::FromVector(std::vector<float>(static_cast<size_t>(4 * n), 1), {n, 4});
    const absl::StatusOr<HostTensor> y = (*model)(*x);
    if (!y.ok()) return y.status();
    std::printf("%s to %s\n", ShapeToString(x->shape()).c_str(), ShapeToString(y->shape()).c_str());
    if (y->shape() != Shape{n, 2}) return absl::InternalError("another shape was expected");
    const absl::Span<const float> values = *y->Values<float>();
    for (const float value : values) {
      if (!(std::abs(static_cast<double>(value) - expected) < 1e-5)) return absl::InternalError("a value is wrong");
    }
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = argc > 1 ? argv[1] : ""});
  const absl::Status status = client.ok() ? Run(**client) : client.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
