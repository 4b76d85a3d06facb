// The files of configs/machines.
#include <gtest/gtest.h>

#include <filesystem>

#include "plan/answers.hpp"

namespace annulet::plan {
namespace {

TEST(MachineFiles, AllAreReadAndNameTheirSource) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ANNULET_SOURCE "/configs/machines")) {
    const std::string name = entry.path().stem().string();
    const cost::Machine machine = machine_named(name);
    EXPECT_TRUE(machine.source.starts_with(name + ": ")) << machine.source;
    EXPECT_GT(machine.inside.beta.value(), 0) << name;
    EXPECT_LE(machine.inside.beta, machine.between.beta) << name;
    ++files;
  }
  EXPECT_EQ(files, 12);
}

TEST(MachineFiles, AcceleratorsHaveWhatThePlannerAsks) {
  struct Wanted {
    const char *name, *type;
    double peak;
    std::int64_t memory;
    int ranks_per_node;
  };
  for (const Wanted& wanted :
       {Wanted{"h100", "bf16", 989e12, 80'000'000'000, 8}, Wanted{"a100", "bf16", 312e12, 80'000'000'000, 8},
        Wanted{"v100", "fp16", 125e12, 32'000'000'000, 8}, Wanted{"tpu-v4", "bf16", 275e12, std::int64_t{32} << 30, 4},
        Wanted{"cpu-cluster", "fp32", 80e9, 4'000'000'000, 32}}) {
    const cost::Device device = machine_named(wanted.name).device;
    EXPECT_DOUBLE_EQ(device.peaks.at(wanted.type).value(), wanted.peak) << wanted.name;
    EXPECT_EQ(device.memory, Bytes(wanted.memory)) << wanted.name;
    EXPECT_EQ(device.ranks_per_node, wanted.ranks_per_node) << wanted.name;
    EXPECT_GT(device.efficiency, 0) << wanted.name;
  }
  EXPECT_EQ(machine_named("h100").device.efficiency, 0.473);
}

TEST(MachineFiles, NamedLinksHaveTheirFigures) {
  const auto alpha = [](const char* name) { return machine_named(name).between.alpha.count(); };
  const auto rate = [](const char* name) { return 1 / machine_named(name).between.beta.value(); };
  EXPECT_DOUBLE_EQ(alpha("nvlink-h100"), 5e-6);
  EXPECT_DOUBLE_EQ(rate("nvlink-h100"), 450e9);
  EXPECT_DOUBLE_EQ(alpha("network-400g"), 10e-6);
  EXPECT_DOUBLE_EQ(rate("network-400g"), 50e9);
  EXPECT_DOUBLE_EQ(alpha("wan-100gbe"), 10e-6);
  EXPECT_DOUBLE_EQ(rate("wan-100gbe"), 12.5e9);
  EXPECT_DOUBLE_EQ(alpha("wan-100gbe-30ms"), 30e-3);
  EXPECT_DOUBLE_EQ(rate("wan-100gbe-30ms"), 12.5e9);
}

}  // namespace
}  // namespace annulet::plan
