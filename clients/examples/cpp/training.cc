// Fits a layer to data by gradient descent. The weights stay on the server, and each step takes their memory.
//
//   training [TARGET]
#include <array>
#include <cstdio>

#include "tensord/tensord.h"

using namespace tensord::client;  // NOLINT(google-build-using-namespace): an example reads better so

Tensor Layer(const Tensor& x, const Tensor& w) { return Tanh(MatMul(x, w)); }

int main(int argc, char** argv) {
  const auto client = Client::Connect({.target = argc > 1 ? argv[1] : ""}).value();
  const Tensor wanted = Tensor::FromVector<double>({0.5, -1, 2}, {3});
  const Tensor samples = Sin(Iota(DType::kF64, {100, 3}) * (Iota(DType::kF64, {100, 3}, 1) + 1));
  const HostTensor x = Eval(*client, samples).value(), y = Eval(*client, Layer(samples, wanted)).value();
  const auto step = Compile(
                        *client,
                        [&client](const Tensor& w, const Tensor& x, const Tensor& y) {
                          const Tensor error = Layer(x, w) - y, loss = Mean(error * error);
                          return std::array<Tensor, 2>{w - 2 * Gradient(*client, loss, {w})[0], loss};
                        },
                        Spec<double>({3}, "w"), x, y)
                        .value();
  const Session session = client->OpenSession().value();
  const HostTensor start = HostTensor::FromVector<double>({0, 0, 0}, {3}).value();
  if (!session.Put("w", start).ok() || !session.Put("x", x).ok() || !session.Put("y", y).ok()) return 1;
  for (int i = 0; i < 300; ++i) {
    const ExecuteAnswer answer = step.Execute({Argument::Donated("w"), Argument::Handle("x"), Argument::Handle("y")},
                                              {ResultPlan::Keep("w"), ResultPlan::Return()}, session.id())
                                     .value();
    if (i % 100 == 0) std::printf("loss %.3g\n", answer.outputs[1].tensor->Item<double>().value());
  }
  const Tensor found = Tensor::FromHost(session.Get("w").value());
  const double error = EvalScalar<double>(*client, Norm(found - wanted)).value();
  std::printf("distance from the weights that made the data: %.3g\n", error);
  return error < 1e-6 && session.Close().ok() ? 0 : 1;
}
