#pragma once
// What a run leaves behind, written by rank 0: config.toml and prediction.json (before the first step, if there is a
// profile), steps.jsonl (while it runs), buckets.jsonl, profile.json (if asked for), summary.json; weights.safetensors
// is the session's. One JSON object per line; seconds and bytes are plain numbers.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "annulet/train/records.hpp"

namespace annulet::report {

enum class Existing { refuse, replace };  // what to do with a folder that has a run in it

class RunFolder final : public train::Observer {
 public:
  // Makes the folder. Throws InputError if it cannot be made or written to, or if it is not empty and `existing` is
  // refuse. What an older run left is replaced when this one begins, not before: until then it may still be refused.
  RunFolder(std::filesystem::path folder, Existing existing);
  ~RunFolder() override;

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path weights() const { return folder_ / "weights.safetensors"; }

  void begin(const train::RunInfo& info) override;
  void step(const train::StepRecord& record) override;
  void end(const train::Summary& summary, const std::vector<train::BucketRecord>& buckets,
           const std::vector<train::StepRecord>& steps) override;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write_out();

  std::filesystem::path folder_;
  std::unique_ptr<std::FILE, Close> steps_;
  fmt::memory_buffer line_;
  Instant flushed_;
};

// prediction.json: a step from its beginning, in seconds.
std::string prediction_json(const cost::StepPrediction& prediction);

// summary.json: null where a value is not known. Names as in the README.
std::string summary_json(const train::Summary& summary);

}  // namespace annulet::report
