#include "annulet/cost/machine.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"

namespace annulet::cost {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

void expect_equal(const Link& a, const Link& b) {
  EXPECT_DOUBLE_EQ(a.alpha.count(), b.alpha.count());
  EXPECT_EQ(a.gap, b.gap);
  EXPECT_DOUBLE_EQ(a.beta.value(), b.beta.value());
  EXPECT_DOUBLE_EQ(a.gamma.value(), b.gamma.value());
  EXPECT_DOUBLE_EQ(a.moving.value(), b.moving.value());
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.burst, b.burst);
  EXPECT_DOUBLE_EQ(a.burst_pace.value(), b.burst_pace.value());
  ASSERT_EQ(a.eager.has_value(), b.eager.has_value());
  if (!a.eager) return;
  EXPECT_EQ(a.eager->limit, b.eager->limit);
  EXPECT_EQ(a.eager->alpha, b.eager->alpha);
  EXPECT_EQ(a.eager->gap, b.eager->gap);
  EXPECT_DOUBLE_EQ(a.eager->beta.value(), b.eager->beta.value());
}

TEST(MachineFile, IsReadBackAsItWasWritten) {
  Machine machine;
  machine.source = "calibrated: 8 ranks on 2 nodes", machine.compute = FlopRate(55.25e9);
  machine.inside = {Seconds(1.3e-6), Seconds(0.21e-6), SecondsPerByte(1 / 7.1e9), SecondsPerByte(1 / 3e9),
                    machine.source};
  machine.between = {Seconds(12e-6), Seconds(1e-6), SecondsPerByte(1 / 1.17e9), SecondsPerByte(1 / 3e9),
                     machine.source};
  machine.inside.eager = {Bytes(4096), Seconds(0.4e-6), Seconds(0.1e-6), SecondsPerByte(1 / 5e9)};
  machine.between.moving = SecondsPerByte(1 / 4e9), machine.between.burst = Bytes(12345);
  machine.between.burst_pace = SecondsPerByte(1 / 2e9);
  const Machine read = parse_machine(to_toml(machine, {"one", "two"}), "file");
  expect_equal(read.inside, machine.inside);
  expect_equal(read.between, machine.between);
  EXPECT_EQ(read.compute, machine.compute);
  EXPECT_EQ(read.source, machine.source);
}

TEST(MachineFile, HasAShortFormForOneLink) {
  const Machine machine =
      parse_machine("alpha = \"10us\"  # latency\nbandwidth = '1GB/s'\n\nreduction = \"8GB/s\"\n", "m");
  expect_equal(machine.inside, machine.between);
  expect_equal(machine.inside, {Seconds(1e-5), Seconds(0), SecondsPerByte(1e-9), SecondsPerByte(1 / 8e9), "m"});
}

TEST(MachineFile, ASectionTakesWhatItLacksFromAbove) {
  const Machine machine = parse_machine(
      "reduction = \"4GB/s\"\nalpha = \"1us\"\n[inside]\nbandwidth = \"8GB/s\"\n[between]\nalpha = "
      "\"9us\"\nbandwidth = \"1GB/s\"\neager_limit = \"64KiB\"\neager_alpha = \"5us\"\n",
      "m");
  EXPECT_DOUBLE_EQ(machine.inside.alpha.count(), 1e-6);
  EXPECT_DOUBLE_EQ(machine.between.alpha.count(), 9e-6);
  EXPECT_EQ(machine.between.gamma, machine.inside.gamma);
  EXPECT_FALSE(machine.inside.eager);
  ASSERT_TRUE(machine.between.eager);
  EXPECT_DOUBLE_EQ(machine.between.eager->alpha.count(), 5e-6);
  EXPECT_EQ(machine.between.eager->beta, machine.between.beta);
}

TEST(MachineFile, OneSectionServesForBothLinks) {
  const Machine machine = parse_machine("[between]\nalpha = \"9us\"\nbandwidth = \"1GB/s\"\n", "m");
  expect_equal(machine.inside, machine.between);
}

TEST(MachineFile, SaysWhatIsWrongAndWhere) {
  const auto refuses = [](const char* text, const char* why) {
    EXPECT_THAT([&] { parse_machine(text, "m.toml"); }, ThrowsMessage<InputError>(HasSubstr(why))) << text;
  };
  refuses("alpha = \"1us\"\n", "m.toml is not a machine file: bandwidth is missing");
  refuses("alpha = \"1us\"\nbandwidth = \"0B/s\"\n", "line 2: '0B/s' moves nothing");
  refuses("alpha = \"1us\"\nbandwidth = \"-1GB/s\"\n",
          "line 2: bandwidth: '-1GB/s' is not a bandwidth (it is negative)");
  refuses("alpha = \"1 parsec\"\nbandwidth = \"1GB/s\"\n", "line 1: alpha: '1 parsec' is not a time");
  refuses("alpha = \"1us\"\nbandwith = \"1GB/s\"\n", "bandwidth is missing");
  refuses("alpha = \"1us\"\nbandwidth = \"1GB/s\"\nbeta = 1\n", "line 3: unknown key 'beta'");
  refuses("[inside]\nalpha = \"1us\"\nbandwidth = \"1GB/s\"\nlatency = 1\n", "line 4: unknown key 'inside.latency'");
  refuses("[outside]\n", "line 1: unknown section 'outside'");
  refuses("alpha = \"1us\nbandwidth = \"1GB/s\"\n", "line 1: \"1us is no value");
  refuses("alpha\n", "line 1: 'alpha' has no '='");
  refuses("alpha = \"1us\"\nalpha = \"2us\"\n", "line 2: 'alpha' is given twice");
  refuses("alpha = \"1us\"\nbandwidth = \"1GB/s\"\neager_alpha = \"1us\"\n", "eager_limit is missing");
}

TEST(MachineFile, NamesAFileThatIsNotThere) {
  EXPECT_THAT([] { read_machine_file("/nowhere/machine.toml"); },
              ThrowsMessage<InputError>(HasSubstr("there is no file /nowhere/machine.toml")));
}

TEST(MachineFile, KnowsTheDeviceThatARankComputesOn) {
  const std::string link = "alpha = \"1us\"\nbandwidth = \"1GB/s\"\n";
  const Machine machine = parse_machine(
      link +
          "[device]\npeak_bf16 = \"989TFLOP/s\"\npeak_fp32 = \"67TFLOP/s\"\nmemory = \"80GB\"\nranks_per_node = "
          "8\nefficiency = 0.473\n",
      "m");
  for (const Machine& read : {machine, parse_machine(to_toml(machine), "m")}) {
    EXPECT_EQ(read.device.peaks.at("bf16"), FlopRate(989e12));
    EXPECT_EQ(read.device.peaks.at("fp32"), FlopRate(67e12));
    EXPECT_EQ(read.device.memory, Bytes(80'000'000'000));
    EXPECT_EQ(read.device.ranks_per_node, 8);
    EXPECT_EQ(read.device.efficiency, 0.473);
  }
  const auto refuses = [&](const std::string& device, const char* why) {
    EXPECT_THAT([&] { parse_machine(link + "[device]\n" + device, "m"); }, ThrowsMessage<InputError>(HasSubstr(why)));
  };
  refuses("efficiency = 1.2\n", "line 4: an efficiency is at most 1");
  refuses("ranks_per_node = 0\n", "line 4: ranks_per_node: '0' is not a whole number of at least 1");
  refuses("speed = 1\n", "line 4: unknown key 'device.speed'");
}

}  // namespace
}  // namespace annulet::cost
