// The main of every MPI test program. Ranks stay in step: after each test they agree whether it passed, so that all of
// them end with the same result. Rank 0 prints as usual, the others only their failures.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <sstream>

#include "support/agree.hpp"

namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// One write per message: lines of several ranks would tear each other otherwise.
void print(const std::string& text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

constexpr const char* kElsewhere = "this test failed on ";

class PrintFailures : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + '.' + test.name() + ": ";
  }

  void OnTestPartResult(const testing::TestPartResult& part) override {
    const std::string message = part.message();
    if (!part.failed() || message.find(kElsewhere) != std::string::npos) return;
    std::ostringstream text;
    text << "[rank " << world_rank() << "] " << test_;
    if (part.file_name() != nullptr) text << part.file_name() << ':' << part.line_number() << ": ";
    text << message << '\n';
    print(text.str());
  }

  // Kept, since GoogleTest holds its lock while it reports a failure and could not be asked then.
  std::string test_;
};

class AgreeAcrossRanks : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    const bool passed = !test.result()->Failed();
    const auto failed = annulet::test::failing_ranks(passed);
    if (passed && !failed.empty()) ADD_FAILURE() << kElsewhere << annulet::test::rank_list(failed);
  }
};

// An exception that no test expects: the others may wait in a collective, so it ends the job. Called before any
// destructor runs, since a destructor may well communicate.
[[noreturn]] void abort_job() {
  std::string what = "std::terminate was called";
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "an exception of unknown type";
  }
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string where = test != nullptr ? std::string(test->test_suite_name()) + '.' + test->name() : "no test";
  print("[rank " + std::to_string(world_rank()) + "] " + where + ": " + what + '\n');
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

// Launched by another MPI's mpiexec, each process would be a world of one and pass.
bool world_is_as_launched() {
  const char* expected = std::getenv("ANNULET_TEST_RANKS");
  int world = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (expected == nullptr || std::atoi(expected) == world) return true;
  print("launched " + std::string(expected) + " ranks but the world has " + std::to_string(world) +
        " (the launcher belongs to another MPI). Use the mpiexec of the MPI compiled with.\n");
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (!world_is_as_launched()) MPI_Abort(MPI_COMM_WORLD, 1);
  std::set_terminate(abort_job);
  GTEST_FLAG_SET(catch_exceptions, false);
  testing::InitGoogleTest(&argc, argv);

  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (world_rank() != 0) {
    const std::unique_ptr<testing::TestEventListener> printer(listeners.Release(listeners.default_result_printer()));
    listeners.Append(new PrintFailures);
  }
  listeners.Append(new AgreeAcrossRanks);  // last, since the end of a test is told in reverse order

  const int result = RUN_ALL_TESTS();
  MPI_Finalize();
  return result;
}
