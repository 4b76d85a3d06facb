#include "annulet/comm/environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "annulet/comm/communicator.hpp"

namespace annulet::comm {
namespace {

TEST(Abort, NeverUsesACodeThatReadsAsSuccess) {
  EXPECT_EQ(abort_code(0), 1);
  EXPECT_EQ(abort_code(256), 1);
  EXPECT_EQ(abort_code(-1), 1);
  EXPECT_EQ(abort_code(75), 75);
}

class LauncherCountTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"})
      unsetenv(name);
  }
};

TEST_F(LauncherCountTest, IsUnknownWithoutALauncher) { EXPECT_FALSE(launcher_count()); }

TEST_F(LauncherCountTest, ComesFromTheLaunchersOwnVariable) {
  setenv("PMI_SIZE", "3", 1);
  ASSERT_TRUE(launcher_count());
  EXPECT_EQ(launcher_count()->processes, 3);
  EXPECT_EQ(launcher_count()->variable, "PMI_SIZE");
}

TEST_F(LauncherCountTest, BelievesSlurmOnlyWhereSrunItselfStartedTheProgram) {
  setenv("SLURM_STEP_NUM_TASKS", "64", 1);
  EXPECT_FALSE(launcher_count());
  setenv("SLURM_STEP_ID", "0", 1);
  ASSERT_TRUE(launcher_count());
  EXPECT_EQ(launcher_count()->processes, 64);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);  // an mpirun of 4 inside the allocation
  EXPECT_EQ(launcher_count()->processes, 4);
}

TEST(NullCommunicator, IsAWorldOfOneWithoutMpi) {
  const Communicator alone;
  EXPECT_EQ(alone.rank(), 0);
  EXPECT_EQ(alone.size(), 1);
  alone.barrier();
  EXPECT_EQ(alone.sum(2.5), 2.5);
  EXPECT_EQ(alone.maximum(-1.0), -1.0);
  EXPECT_EQ(alone.broadcast("text", 0), "text");
  EXPECT_EQ(alone.all_gather(std::string("one")), std::vector<std::string>{"one"});
  EXPECT_EQ(alone.node_ranks(), std::vector<int>{0});
}

}  // namespace
}  // namespace annulet::comm
