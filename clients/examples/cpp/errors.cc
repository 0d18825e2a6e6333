// Shows how mistakes come out: with their place and their reason, before a call or after it.
//
//   errors [TARGET]
#include <cstdio>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

int main(int argc, char** argv) {
  const auto client = Client::Connect({.target = argc > 1 ? argv[1] : ""}).value();
  const Tensor x = Full({2, 2}, 1, DType::kF64);

  // A shape that does not fit fails at once, at this line; whatever is computed from it fails with it.
  const Tensor failed = Exp(x + Full({3}, 1, DType::kF64));
  std::printf("%s\n", Describe(failed.status()).c_str());

  // A matrix without an inverse is found by the run. Its error has a reason and the node, and with it this line.
  const absl::Status singular = Eval(*client, Inverse(x)).status();
  std::printf("%s: %s\n", ReasonOf(singular).c_str(), Describe(singular).c_str());

  // A deadline ends a call wherever it is.
  const absl::Status late = Eval(*client, x, {.deadline = absl::ZeroDuration()}).status();
  std::printf("%s\n", Describe(late).c_str());
  return !failed.ok() && ReasonOf(singular) != "" && absl::IsDeadlineExceeded(late) ? 0 : 1;
}
