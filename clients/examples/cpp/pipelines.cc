// Sends steps without waiting for the ones before: each takes the state that the last one keeps.
//
//   pipelines [TARGET]
#include <array>
#include <cstdio>
#include <vector>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

std::array<Tensor, 2> Step(const Tensor& state, const Tensor& change) { return {state + change, Sum(state + change)}; }

int main(int argc, char** argv) {
  const auto client = Client::Connect({.target = argc > 1 ? argv[1] : ""}).value();
  const HostTensor ones = Eval(*client, Full({200}, 1, DType::kF64)).value();
  const auto step = Compile(*client, Step, ones, ones).value();
  const Session session = client->OpenSession().value();
  if (!session.Put("state", ones).ok()) return 1;
  const auto pipeline = session.OpenPipeline();
  std::vector<PendingAnswer> sums;
  for (int i = 0; i < 20; ++i) {
    sums.push_back(pipeline
                       ->Submit(step.CallWith({Argument::Donated("state"), ones},
                                              {ResultPlan::Keep("state"), ResultPlan::Return()}))
                       .value());
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const double sum = sums[i].Wait().value().outputs[1].tensor->Item<double>().value();
    if (sum != 200.0 * static_cast<double>(i + 2)) return 1;
  }
  std::printf("%zu steps, one after the other\n", sums.size());
  return pipeline->Finish().ok() && session.Close().ok() ? 0 : 1;
}
