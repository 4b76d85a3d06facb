#pragma once
// The options of annulet plan: each topic takes the groups that it needs and turns them into its question.
#include <CLI/CLI.hpp>
#include <optional>

#include "annulet/plan/memory.hpp"
#include "annulet/plan/step.hpp"
#include "commands.hpp"

namespace annulet::cli {

// Takes away options of a group that a topic would ignore.
void without(CLI::App& app, std::initializer_list<const char*> flags);

struct OutputOptions {
  std::optional<std::string> json, csv;  // a file; empty: instead of the table
  bool explain = false;

  void add(CLI::App& app);
  int print(const plan::Answer& answer) const;  // the exit code
};

struct ModelOptions {
  std::string model;
  Elements sequence = 0;
  bool recompute = false, attention = true;

  void add(CLI::App& app);
  plan::Architecture architecture() const;
  plan::Work work() const;
};

// A machine file, and what the command line puts in its place.
struct MachineOptions {
  std::string machine = "h100";
  std::optional<Seconds> alpha;
  std::optional<ByteRate> bandwidth;
  std::optional<Bytes> memory;
  int ranks_per_node = 0;

  void add(CLI::App& app);
  cost::Machine read() const;
};

struct StepOptions {
  ModelOptions model;
  MachineOptions machine;
  std::string type = "bf16";
  std::optional<FlopRate> peak;
  double efficiency = 0;
  Elements tokens = 0;
  int gradient_bytes = 2;
  Bytes bucket{25 << 20}, first_bucket{1 << 20}, segment{4 << 20};

  void add(CLI::App& app);
  plan::StepQuestion question(int ranks) const;
};

}  // namespace annulet::cli
