// Shows how mistakes come out: with their place and their reason, before a call or after it.
//
//   errors [TARGET]
#include <cstdio>
#include <memory>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

namespace {

absl::Status Run(Client& client) {
  const Tensor x = Tensor::FromVector<float>({1, 2, 3, 4}, {2, 2});

  // A shape that does not fit fails at once, at this line; whatever is computed from it fails with it.
  const Tensor failed = Exp(x + Tensor::FromVector<float>({1, 2, 3}, {3}));
  std::printf("%s\n", failed.status().ToString().c_str());
  if (Eval(client, failed).ok()) return absl::InternalError("a failed tensor has a value");

  // A matrix without an inverse is found by the run. Its error names the node, and with it this line.
  const Tensor singular = Full({2, 2}, 1, DType::kF64);
  const absl::StatusOr<HostTensor> inverse = Eval(client, Inverse(singular));
  if (inverse.ok()) return absl::InternalError("a singular matrix has an inverse");
  const auto detail = GetErrorDetail(inverse.status());
  if (!detail.has_value()) return inverse.status();
  std::printf("%s: node %s\n", detail->reason.c_str(), detail->node.c_str());

  // A deadline ends a call wherever it is.
  const absl::StatusOr<HostTensor> late = Eval(client, x, {.deadline = absl::ZeroDuration()});
  std::printf("%s\n", late.status().ToString().c_str());
  return absl::IsDeadlineExceeded(late.status()) ? absl::OkStatus() : absl::InternalError("no deadline was exceeded");
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = argc > 1 ? argv[1] : ""});
  const absl::Status status = client.ok() ? Run(**client) : client.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
