// A program of somebody who has tensord's client, and no checkout of it: outside TARGET.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensord/tensord.h"
#include "tensord/version.h"

namespace {

// The version that the program was compiled against is the one that it runs with.
absl::Status CheckVersion() {
  if (std::string(TENSORD_VERSION_STRING) != tensord::client::Version()) {
    return absl::FailedPreconditionError(std::string("compiled against ") + TENSORD_VERSION_STRING + ", linked with " +
                                         std::string(tensord::client::Version()));
  }
  return absl::OkStatus();
}

// (1, 2, 3) squared and summed by the server is 14.
absl::Status CheckSum(const char* target) {
  using tensord::client::Tensor;
  tensord::client::ConnectOptions options;
  options.target = target;
  absl::StatusOr<std::unique_ptr<tensord::client::Client>> client = tensord::client::Client::Connect(options);
  if (!client.ok()) return client.status();
  const Tensor x = Tensor::FromVector<double>({1, 2, 3}, {3});
  const absl::StatusOr<tensord::client::HostTensor> sum = Eval(**client, Sum(x * x, {0}));
  if (!sum.ok()) return sum.status();
  const auto values = sum->Values<double>();
  if (!values.ok()) return values.status();
  if (values->size() != 1 || values->front() != 14.0) return absl::InternalError("the sum of squares is not 14");
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: outside TARGET\n");
    return 2;
  }
  absl::Status status = CheckVersion();
  if (status.ok()) status = CheckSum(argv[1]);
  if (!status.ok()) {
    std::fprintf(stderr, "outside: %s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("14 by tensord %s\n", TENSORD_VERSION_STRING);
  return 0;
}
