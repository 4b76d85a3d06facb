#include "annulet/report/run_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "annulet/base/atomic_file.hpp"
#include "annulet/base/error.hpp"
#include "annulet/report/profile_file.hpp"
#include "build_info.hpp"

namespace annulet::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFiles[] = {"config.toml",         "steps.jsonl",  "buckets.jsonl",  "summary.json",
                                  "weights.safetensors", "profile.json", "prediction.json"};

void prepare(const std::filesystem::path& folder, Existing existing) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder)) {
    throw InputError({fmt::format("the run folder {} cannot be made", folder.string()),
                      error ? error.message() : "it is a file", "Choose another with --out"});
  }
  if (existing == Existing::refuse && !std::filesystem::is_empty(folder)) {
    throw InputError({fmt::format("the run folder {} is not empty", folder.string()), "an older run would be lost",
                      "Choose another with --out, or pass --overwrite"});
  }
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json seconds(const std::optional<Seconds>& value) { return value ? number(value->count()) : Json(nullptr); }

Json optional(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

Json bucket_cap_json(const std::optional<cost::BucketCapChoice>& choice) {
  if (!choice) return nullptr;
  Json curve = Json::array();
  for (const cost::CapPrediction& point : choice->curve) {
    curve.push_back(
        {{"cap_bytes", point.cap.value()}, {"buckets", point.buckets}, {"predicted_step_seconds", point.step.count()}});
  }
  return {{"cap_bytes", choice->cap.value()}, {"basis", choice->basis}, {"curve", curve}};
}

Json link_json(const cost::Link& link) {
  const double beta = link.beta.value();
  Json json{{"alpha_seconds", link.alpha.count()},
            {"gap_seconds", link.gap.count()},
            {"bandwidth_bytes_per_second", beta > 0 ? Json(1 / beta) : Json(nullptr)},
            {"reduction_seconds_per_byte", link.gamma.value()},
            {"source", link.source}};
  if (link.eager) {
    const double eager = link.eager->beta.value();
    json["eager"] = {{"limit_bytes", link.eager->limit.value()},
                     {"alpha_seconds", link.eager->alpha.count()},
                     {"gap_seconds", link.eager->gap.count()},
                     {"bandwidth_bytes_per_second", eager > 0 ? Json(1 / eager) : Json(nullptr)}};
  }
  return json;
}

// The link of one node, or the one between nodes, with what is inside a node beside it.
Json network_json(const cost::Network& network) {
  Json json = link_json(network.ring_link());
  if (network.nodes() > 1) json["inside_node"] = link_json(network.inside);
  return json;
}

Json values(const std::vector<Bytes>& of_ranks) {
  Json json = Json::array();
  for (const Bytes bytes : of_ranks) json.push_back(bytes.value());
  return json;
}

Json exposed_json(const std::optional<train::ExposedTimes>& exposed, int zero) {
  if (!exposed) return nullptr;
  Json json{{zero > 0 ? "reduce_scatter_seconds" : "all_reduce_seconds", number(exposed->gradients.count())}};
  if (zero > 0) json["all_gather_seconds"] = number(exposed->weights.count());
  json["control_seconds"] = number(exposed->control.count());
  return json;
}

Json memory_json(const std::vector<train::MemoryRecord>& memory) {
  Json json = Json::object();
  for (const train::MemoryRecord& record : memory) {
    std::string name = record.name;
    std::ranges::replace(name, ' ', '_');
    json[name] = {{"model_state", record.state},
                  {"bytes_by_rank", values(record.counted)},
                  {"planned_bytes_by_rank", values(record.planned)}};
  }
  return json;
}

Json reproducible_json(const train::Summary& s) {
  if (!s.reproducible_cost) return nullptr;
  return {{"micro_shards", s.reproducible},
          {"in_micro_shards_seconds", s.reproducible_cost->in_micro_shards.count()},
          {"by_default_seconds", s.reproducible_cost->by_default.count()},
          {"default_wire_bytes_per_step", s.dense_wire_per_step.value()}};
}

std::string build_text() {
  return fmt::format("{}, {}, {}{}{}", build::kCompiler, build::kType, build::kArch, build::kBlas ? ", BLAS" : "",
                     *build::kSanitize != '\0' ? fmt::format(", sanitize {}", build::kSanitize) : std::string());
}

void write_line(std::string& text, const train::BucketRecord& r) {
  fmt::format_to(
      std::back_inserter(text),
      R"({{"step":{},"bucket":{},"bytes":{},"ready":{:.9f},"start":{:.9f},"end":{:.9f},)"
      R"("measured_seconds":{:.9f},"predicted_seconds":{:.9f},"transfer_seconds":{:.9f},"waiting_seconds":{:.9f}}})"
      "\n",
      r.step, r.bucket, r.bytes.value(), r.ready.count(), r.start.count(), r.end.count(), r.measured.count(),
      r.predicted.count(), r.transfer.count(), r.waiting.count());
}

}  // namespace

RunFolder::RunFolder(std::filesystem::path folder, Existing existing)
    : folder_(std::move(folder)), flushed_(Clock::now()) {
  prepare(folder_, existing);
  if (access(folder_.c_str(), W_OK | X_OK) != 0) {
    throw InputError({fmt::format("nothing can be written to the run folder {}", folder_.string()),
                      std::strerror(errno), "Choose another with --out"});
  }
}

RunFolder::~RunFolder() = default;

void RunFolder::begin(const train::RunInfo& info) {
  std::error_code none;
  for (const char* file : kFiles) std::filesystem::remove(folder_ / file, none);
  const std::filesystem::path steps = folder_ / "steps.jsonl";
  steps_.reset(std::fopen(steps.c_str(), "we"));
  if (!steps_)
    throw RunError({fmt::format("{} cannot be written", steps.string()), std::strerror(errno),
                    "Make room, or choose another folder with --out"});
  write_atomically(folder_ / "config.toml", info.config_toml);
  if (info.prediction) write_atomically(folder_ / "prediction.json", prediction_json(*info.prediction) + "\n");
}

// Formatted into one buffer, so that a step allocates nothing; written out every few seconds, so that it can be
// watched.
void RunFolder::step(const train::StepRecord& r) {
  line_.clear();
  const train::StepSeconds& s = r.seconds;
  fmt::format_to(
      std::back_inserter(line_),
      R"({{"step":{},"loss":{:.9g},"lr":{:.9g},"gradient_norm":{:.9g},"samples":{},"data_seconds":{:.9f},)"
      R"("forward_seconds":{:.9f},"backward_seconds":{:.9f},"exposed_seconds":{:.9f},"gather_seconds":{:.9f},"room_seconds":{:.9f},"control_seconds":{:.9f},"optimizer_seconds":{:.9f},)"
      R"("total_seconds":{:.9f},"payload_bytes":{},"wire_bytes":{}}})"
      "\n",
      r.step, r.loss, r.learning_rate, r.gradient_norm, r.samples, s.data.count(), s.forward.count(),
      s.backward.count(), s.exposed.count(), s.gather.count(), s.room.count(), s.control.count(), s.optimizer.count(),
      s.total.count(), r.payload.value(), r.wire.value());
  if (std::fwrite(line_.data(), 1, line_.size(), steps_.get()) != line_.size()) write_out();
  if (Clock::now() - flushed_ > Seconds(2)) write_out();
}

void RunFolder::write_out() {
  flushed_ = Clock::now();
  if (std::fflush(steps_.get()) == 0 && std::ferror(steps_.get()) == 0) return;
  throw RunError({fmt::format("{} cannot be written", (folder_ / "steps.jsonl").string()), std::strerror(errno),
                  "Make room, or choose another folder with --out"});
}

void RunFolder::end(const train::Summary& summary, const std::vector<train::BucketRecord>& buckets,
                    const std::vector<train::StepRecord>&) {
  write_out();
  std::string lines;
  for (const train::BucketRecord& record : buckets) write_line(lines, record);
  write_atomically(folder_ / "buckets.jsonl", lines);
  if (summary.profile) write_atomically(folder_ / "profile.json", profile_json(*summary.profile));
  write_atomically(folder_ / "summary.json", summary_json(summary) + "\n");
}

std::string prediction_json(const cost::StepPrediction& p) {
  Json buckets = Json::array();
  for (const cost::BucketPrediction& bucket : p.buckets) {
    buckets.push_back({{"bytes", bucket.bytes.value()},
                       {"ready", bucket.ready.count()},
                       {"start", bucket.start.count()},
                       {"end", bucket.end.count()}});
  }
  const Json json{{"step_seconds", p.step.count()},
                  {"forward_seconds", p.forward.count()},
                  {"backward_begins", p.backward_begins.count()},
                  {"backward_ends", p.backward_ends.count()},
                  {"exposed_seconds", p.exposed.count()},
                  {"weights_seconds", p.weights.count()},
                  {"room_seconds", p.room.count()},
                  {"control_seconds", p.control.count()},
                  {"optimizer_seconds", p.optimizer.count()},
                  {"buckets", buckets}};
  return json.dump(2);
}

std::string summary_json(const train::Summary& s) {
  const auto& evaluation = s.evaluation;
  const Json json{
      {"version", build::kVersion},
      {"build", build_text()},
      {"seed", s.seed},
      {"ranks", s.ranks},
      {"zero", s.zero},
      {"compress", s.compress},
      {"reproducible", reproducible_json(s)},
      {"driver", s.driver},
      {"algorithm", s.algorithm},
      {"parameters", s.parameters},
      {"steps", s.steps},
      {"global_batch", s.global_batch},
      {"bucket_bytes", s.bucket_bytes.value()},
      {"bucket_auto", bucket_cap_json(s.bucket_cap)},
      {"train_loss", optional(s.train_loss)},
      {"eval",
       {{"loss", evaluation ? number(evaluation->loss) : Json(nullptr)},
        {"accuracy", evaluation ? optional(evaluation->accuracy) : Json(nullptr)},
        {"samples", evaluation ? Json(evaluation->samples) : Json(nullptr)},
        {"targets", evaluation ? Json(evaluation->targets) : Json(nullptr)}}},
      {"median_step_seconds", seconds(s.median_step)},
      {"predicted_step_seconds", seconds(s.predicted_step)},
      {"median_forward_seconds", seconds(s.median_forward)},
      {"samples_per_second", optional(s.samples_per_second)},
      {"median_exposed_seconds", seconds(s.median_exposed)},
      {"median_exposed_by_collective", exposed_json(s.exposed, s.zero)},
      {"median_skew_seconds", seconds(s.median_skew)},
      {"hidden_fraction", optional(s.hidden_fraction)},
      {"wire_bytes_per_step", s.wire_per_step.value()},
      {"planned_wire_bytes_per_step", s.planned_wire_per_step.value()},
      {"wire_bytes_by_rank", values(s.wire_by_rank)},
      {"dense_wire_bytes_per_step", s.dense_wire_per_step.value()},
      {"payload_bytes", s.payload.value()},
      {"dense_payload_bytes", s.dense_payload.value()},
      {"median_pack_seconds", seconds(s.median_pack)},
      {"median_unpack_seconds", seconds(s.median_unpack)},
      {"control_bytes_per_step", s.control_per_step.value()},
      {"all_reduce",
       {{"measured_seconds", seconds(s.all_reduce_measured)}, {"predicted_seconds", seconds(s.all_reduce_predicted)}}},
      {"flops_per_step", s.flops_per_step.value()},
      {"peak_flops", s.peak.value()},
      {"gemm_flops", s.gemm.value()},
      {"mfu", optional(s.mfu)},
      {"hfu", optional(s.hfu)},
      {"memory", memory_json(s.memory)},
      {"peak_rss_bytes", s.peak_rss.value()},
      {"peak_rss_bytes_by_rank", values(s.peak_rss_by_rank)},
      {"link", network_json(s.network)}};
  return json.dump(2);
}

}  // namespace annulet::report
