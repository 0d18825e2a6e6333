// Two layers of neurons for batches of any size: one program, compiled once.
//
//   perceptron [TARGET]
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

Tensor Perceptron(const Tensor& x) {
  const Tensor w1 = Full({4, 8}, 0.1, DType::kF32), b1 = Full({8}, 0.5, DType::kF32), w2 = Full({8, 2}, 1, DType::kF32);
  return MatMul(Tanh(MatMul(x, w1) + b1), w2);
}

int main(int argc, char** argv) {
  const auto client = Client::Connect({.target = argc > 1 ? argv[1] : ""}).value();
  const auto model = Compile(*client, Perceptron, Spec<float>({Symbol("n"), 4}, "x")).value();
  for (const int64_t n : {1, 7, 1000, 0}) {
    const HostTensor y = model(Eval(*client, Full({n, 4}, 1, DType::kF32)).value()).value();
    std::printf("%s\n", ShapeToString(y.shape()).c_str());
    const auto is_right = [](float value) { return std::abs(value - 8 * std::tanh(0.9F)) < 1e-5F; };
    if (y.shape() != Shape{n, 2} || !std::ranges::all_of(y.Values<float>().value(), is_right)) return 1;
  }
  return 0;
}
