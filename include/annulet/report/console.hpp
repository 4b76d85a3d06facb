#pragma once
// What a person sees while a run goes on: a heading, a line that is redrawn on a terminal (plain lines elsewhere), and
// the closing table.
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "annulet/train/records.hpp"

namespace annulet::report {

enum class Liveliness { redraw, lines };

class Console final : public train::Observer {
 public:
  explicit Console(Liveliness liveliness, std::FILE* out = stdout);

  void begin(const train::RunInfo& info) override;
  void step(const train::StepRecord& record) override;
  void evaluated(long step, const train::Evaluation& evaluation) override;
  void end(const train::Summary& summary, const std::vector<train::BucketRecord>& buckets,
           const std::vector<train::StepRecord>& steps) override;

 private:
  void print(const std::string& text);
  void erase_line();

  Liveliness liveliness_;
  std::FILE* out_;
  long steps_ = 0;
  std::string sample_ = "sample";
  Elements samples_ = 0;  // since the last line
  Instant begun_, shown_;
  bool line_open_ = false;  // a redrawn line stands on the terminal
  fmt::memory_buffer line_;
};

// Whether output ends on a terminal. Launchers give ranks a pseudo-terminal even when their own output goes to a file,
// so under one it is the launcher's output that counts.
Liveliness detect_liveliness();

}  // namespace annulet::report
