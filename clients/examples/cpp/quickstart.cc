// A softmax layer: computes ordinary expressions on the server, in one call.
//
//   quickstart_cpp [TARGET]
#include <cstdio>
#include <memory>

#include "tensord/tensord.h"

namespace {

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

Tensor Softmax(const Tensor& x) {
  const Tensor shifted = Exp(x - Max(x, {-1}, /*keep_dims=*/true));
  return shifted / Sum(shifted, {-1}, /*keep_dims=*/true);
}

absl::Status Run(const char* target) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = target});
  if (!client.ok()) return client.status();

  const Tensor x = Tensor::FromVector<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor weights = Tensor::FromVector<float>({1, 0, 0, 1, 1, 1}, {3, 2});
  const Tensor probabilities = Softmax(MatMul(x, weights) + 0.5);

  // Nothing has been computed yet. Both results come from one program, compiled at the first call.
  absl::StatusOr<std::vector<HostTensor>> values = EvalAll(**client, {probabilities, Sum(probabilities, {0})});
  if (!values.ok()) return values.status();
  for (const HostTensor& value : *values) {
    std::printf("f32%s:", ShapeToString(value.shape()).c_str());
    const absl::Span<const float> elements = *value.Values<float>();
    for (float element : elements) std::printf(" %g", element);
    std::printf("\n");
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : "");
  if (status.ok()) return 0;
  const auto detail = GetErrorDetail(status);
  std::fprintf(stderr, "%s%s%s\n", status.ToString().c_str(), detail ? ", reason " : "",
               detail ? detail->reason.c_str() : "");
  return 1;
}
