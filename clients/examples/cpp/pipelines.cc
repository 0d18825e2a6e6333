// Sends steps without waiting for the ones before: each takes the state that the last one keeps.
//
//   pipelines [TARGET]
#include <cstdio>
#include <memory>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

namespace {

absl::Status Run(Client& client) {
  constexpr int64_t kSize = 200;
  const auto step = Compile(
      client,
      [](const Tensor& state, const Tensor& change) {
        const Tensor next = state + change;
        return std::array<Tensor, 2>{next, Sum(next)};
      },
      Spec<double>({kSize}, "state"), Spec<double>({kSize}, "change"));
  if (!step.ok()) return step.status();
  const absl::StatusOr<Session> session = client.OpenSession();
  if (!session.ok()) return session.status();
  const absl::StatusOr<HostTensor> zeros = HostTensor::FromVector(std::vector<double>(kSize, 0), {kSize});
  const absl::StatusOr<HostTensor> ones = HostTensor::FromVector(std::vector<double>(kSize, 1), {kSize});
  const absl::Status put = client.PutTensor(session->id(), "state", *zeros);
  if (!put.ok()) return put;

  const std::unique_ptr<Pipeline> pipeline = client.OpenPipeline({.session = session->id()});
  std::vector<PendingAnswer> sums;
  for (int i = 0; i < 20; ++i) {
    absl::StatusOr<PendingAnswer> sum = pipeline->Submit(
        step->CallWith({Argument::Donated("state"), *ones}, {ResultPlan::Keep("state"), ResultPlan::Return()}));
    if (!sum.ok()) return sum.status();
    sums.push_back(*std::move(sum));
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const absl::StatusOr<ExecuteAnswer> answer = sums[i].Wait();
    if (!answer.ok()) return answer.status();
    const double sum = (*answer->outputs[1].tensor->Values<double>())[0];
    if (sum != static_cast<double>(i + 1) * kSize) return absl::InternalError("a step is missing");
  }
  std::printf("%zu steps, one after the other\n", sums.size());
  const absl::Status finished = pipeline->Finish();
  return finished.ok() ? client.CloseSession(session->id()) : finished;
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = argc > 1 ? argv[1] : ""});
  const absl::Status status = client.ok() ? Run(**client) : client.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
