// Finds the largest eigenvalue of a matrix that stays on the server. The vector is donated: each step takes its memory.
//
//   power_iteration [TARGET]
#include <array>
#include <cstdio>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

std::array<Tensor, 2> Step(const Tensor& a, const Tensor& v) {
  const Tensor product = MatMul(a, v), length = Norm(product);
  return {product / length, length};
}

int main(int argc, char** argv) {
  const auto client = Client::Connect({.target = argc > 1 ? argv[1] : ""}).value();
  const Tensor hilbert = 1 / (Iota(DType::kF64, {200, 200}) + Iota(DType::kF64, {200, 200}, 1) + 1);
  const HostTensor a = Eval(*client, hilbert).value(), ones = Eval(*client, Full({200}, 1, DType::kF64)).value();
  const auto step = Compile(*client, Step, a, ones).value();
  const Session session = client->OpenSession().value();
  if (!session.Put("a", a).ok() || !session.Put("v", ones).ok()) return 1;

  double eigenvalue = 0;
  for (int i = 0; i < 50; ++i) {
    const ExecuteAnswer answer = step.Execute({Argument::Handle("a"), Argument::Donated("v")},
                                              {ResultPlan::Keep("v"), ResultPlan::Return()}, session.id())
                                     .value();
    eigenvalue = answer.outputs[1].tensor->Item<double>().value();
  }
  const Tensor v = Tensor::FromHost(session.Get("v").value());
  const double error = EvalScalar<double>(*client, Norm(MatMul(hilbert, v) - eigenvalue * v)).value();
  std::printf("eigenvalue %.15g, |a v - eigenvalue v| %.3g\n", eigenvalue, error);
  return error < 1e-10 && session.Close().ok() ? 0 : 1;
}
