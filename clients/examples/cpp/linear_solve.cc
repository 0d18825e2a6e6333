// Solves a dense system of equations, and measures the residual in the same call.
//
//   linear_solve [TARGET]
#include <cstdio>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

// Numbers between -1 and 1 without a pattern.
Tensor Noise(int64_t rows, int64_t columns) {
  const Tensor k = Iota(DType::kF64, {rows, columns}) * 700 + Iota(DType::kF64, {rows, columns}, 1);
  return Sin(k * k);
}

int main(int argc, char** argv) {
  const auto client = Client::Connect({.target = argc > 1 ? argv[1] : ""}).value();
  const Tensor a = Noise(300, 300), b = Noise(300, 2), x = Solve(a, b);
  const double residual = EvalScalar<double>(*client, Norm(MatMul(a, x) - b) / Norm(b)).value();
  std::printf("relative residual %.3g\n", residual);
  return residual < 1e-10 ? 0 : 1;
}
