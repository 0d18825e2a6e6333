// Solves a dense system of equations, and measures the residual in the same call.
//
//   linear_solve [TARGET]
#include <cstdio>
#include <memory>
#include <random>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

namespace {

Tensor RandomMatrix(int64_t rows, int64_t columns, std::mt19937* random) {
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<size_t>(rows * columns));
  for (double& value : values) value = normal(*random);
  return Tensor::FromVector(std::move(values), {rows, columns});
}

absl::Status Run(Client& client) {
  std::mt19937 random(1);
  const Tensor a = RandomMatrix(300, 300, &random), b = RandomMatrix(300, 2, &random);
  const Tensor x = Solve(a, b);
  const absl::StatusOr<HostTensor> residual = Eval(client, Norm(MatMul(a, x) - b) / Norm(b));
  if (!residual.ok()) return residual.status();
  const double relative = (*residual->Values<double>())[0];
  std::printf("relative residual %.3g\n", relative);
  return relative < 1e-10 ? absl::OkStatus() : absl::InternalError("the residual is too large");
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = argc > 1 ? argv[1] : ""});
  const absl::Status status = client.ok() ? Run(**client) : client.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
