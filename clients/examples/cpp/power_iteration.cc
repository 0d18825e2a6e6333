// Finds the largest eigenvalue of a matrix that stays on the server. The vector is donated: each step takes its memory.
//
//   power_iteration [TARGET]
#include <cmath>
#include <cstdio>
#include <memory>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

namespace {

constexpr int64_t kSize = 200;

std::array<Tensor, 2> Step(const Tensor& a, const Tensor& v) {
  const Tensor product = MatMul(a, v);
  const Tensor length = Norm(product);
  return {product / length, length};
}

absl::Status Run(Client& client) {
  std::vector<double> hilbert;
  for (int64_t i = 0; i < kSize * kSize; ++i) {
    hilbert.push_back(1.0 / static_cast<double>(i / kSize + i % kSize + 1));
  }
  const absl::StatusOr<HostTensor> a = HostTensor::FromVector(std::move(hilbert), {kSize, kSize});
  const absl::StatusOr<HostTensor> v = HostTensor::FromVector(std::vector<double>(kSize, 1.0), {kSize});
  const auto step = Compile(client, Step, Spec<double>({kSize, kSize}, "a"), Spec<double>({kSize}, "v"));
  if (!step.ok()) return step.status();
  const absl::StatusOr<Session> session = client.OpenSession();
  if (!session.ok()) return session.status();
  absl::Status put = client.PutTensor(session->id(), "a", *a);
  if (put.ok()) put = client.PutTensor(session->id(), "v", *v);
  if (!put.ok()) return put;

  double eigenvalue = 0;
  for (int i = 0; i < 50; ++i) {
    const absl::StatusOr<ExecuteAnswer> answer = step->Execute(
        {Argument::Handle("a"), Argument::Donated("v")}, {ResultPlan::Keep("v"), ResultPlan::Return()}, session->id());
    if (!answer.ok()) return answer.status();
    eigenvalue = (*answer->outputs[1].tensor->Values<double>())[0];
  }
  const absl::StatusOr<HostTensor> vector = client.GetTensor(session->id(), "v");
  if (!vector.ok()) return vector.status();
  const Tensor found = Tensor::FromHost(*vector);
  const absl::StatusOr<HostTensor> error = Eval(client, Norm(MatMul(Tensor::FromHost(*a), found) - eigenvalue * found));
  if (!error.ok()) return error.status();
  std::printf("eigenvalue %.15g, |a v - eigenvalue v| %.3g\n", eigenvalue, (*error->Values<double>())[0]);
  if (!((*error->Values<double>())[0] < 1e-10)) return absl::InternalError("the iteration did not converge");
  return client.CloseSession(session->id());
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = argc > 1 ? argv[1] : ""});
  const absl::Status status = client.ok() ? Run(**client) : client.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
