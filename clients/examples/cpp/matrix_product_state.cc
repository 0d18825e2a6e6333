// Computes the norm of a matrix product state of many sites by one einsum, and checks it by transfer matrices.
//
//   matrix_product_state [TARGET]
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>

#include "tensord/messages.h"
#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

namespace {

constexpr int64_t kSites = 40, kBond = 8, kPhysical = 2;

absl::Status Run(Client& client) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0, 0.3);
  std::vector<LabeledTensor> network;
  Tensor transfer = Full({1, 1}, 1, DType::kF64);
  for (int64_t site = 0; site < kSites; ++site) {
    const int64_t left = site == 0 ? 1 : kBond, right = site == kSites - 1 ? 1 : kBond;
    std::vector<double> values(static_cast<size_t>(left * kPhysical * right));
    for (double& value : values) value = normal(random);
    const Tensor a = Tensor::FromVector(std::move(values), {left, kPhysical, right});
    // Labels of the bonds of ket and bra, and of the physical index that both share.
    const int64_t ket = site, bra = kSites + 1 + site, physical = 2 * kSites + 2 + site;
    network.push_back({a, {ket, physical, ket + 1}});
    network.push_back({a, {bra, physical, bra + 1}});
    transfer = Einsum("ab,asp,bsq->pq", {transfer, a, a});
  }
  const Tensor norm = Einsum(network, {});
  const absl::StatusOr<TracedGraph> traced = Trace({norm});
  if (!traced.ok()) return traced.status();
  const auto plan = client.PlanContractions(traced->graph);
  if (!plan.ok()) return plan.status();
  const absl::StatusOr<HostTensor> error = Eval(client, Abs(norm / Sum(transfer) - 1));
  if (!error.ok()) return error.status();
  std::printf("%.3g operations by %s; relative error %.2g\n", (*plan)[0].flops(), (*plan)[0].optimizer().c_str(),
              (*error->Values<double>())[0]);
  return (*error->Values<double>())[0] < 1e-12 ? absl::OkStatus() : absl::InternalError("the norms differ");
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.target = argc > 1 ? argv[1] : ""});
  const absl::Status status = client.ok() ? Run(**client) : client.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
