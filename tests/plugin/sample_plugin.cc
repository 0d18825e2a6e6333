// A family from outside of the tree, as docs/extend/adding-a-family.md describes it.
#include "engine/families/family_plugin.h"
#include "tests/plugin/roll_op.h"
#include "tests/plugin/sample.pb.h"

const tensord::FamilyPlugin* tensord_family_plugin_v1() {
  google::protobuf::LinkMessageReflection<sample::v1::Roll>();
  static const tensord::DeviceKernels kernels = {
      .device_kind = "cpu", .table = sample::CpuKernels().data(), .count = sample::CpuKernels().size()};
  static const tensord::FamilyPlugin plugin = {.family = "sample",
                                               .ops = sample::Ops().data(),
                                               .num_ops = sample::Ops().size(),
                                               .kernels = &kernels,
                                               .num_kernels = 1};
  return &plugin;
}
