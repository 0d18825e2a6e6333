// Computes the norm of a matrix product state of many sites by one einsum, and checks it by transfer matrices.
//
//   matrix_product_state [TARGET]
#include <cstdio>
#include <vector>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

int main(int argc, char** argv) {
  const auto client = Client::Connect({.target = argc > 1 ? argv[1] : ""}).value();
  constexpr int64_t kSites = 40, kBond = 8;
  std::vector<LabeledTensor> network;
  Tensor transfer = Full({1, 1}, 1, DType::kF64);
  for (int64_t site = 0; site < kSites; ++site) {
    const int64_t left = site == 0 ? 1 : kBond, right = site == kSites - 1 ? 1 : kBond;
    const Tensor k = Iota(DType::kF64, {left * 2 * right}) + 1000 * site;
    const Tensor a = Reshape(Sin(k * k) / 2, {left, 2, right});
    // Labels of the bonds of ket and bra, and of the physical index that both share.
    const int64_t ket = site, bra = kSites + 1 + site, physical = 2 * kSites + 2 + site;
    network.push_back({a, {ket, physical, ket + 1}});
    network.push_back({a, {bra, physical, bra + 1}});
    transfer = Einsum("ab,asp,bsq->pq", {transfer, a, a});
  }
  const double error = EvalScalar<double>(*client, Abs(Einsum(network, {}) / Sum(transfer) - 1)).value();
  std::printf("relative error %.2g\n", error);
  return error < 1e-12 ? 0 : 1;
}
