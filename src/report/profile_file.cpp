#include "annulet/report/profile_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "annulet/base/error.hpp"

namespace annulet::report {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::filesystem::path& file, std::string why) {
  throw InputError({fmt::format("{} is not a profile", file.string()), std::move(why),
                    "Make one: annulet train --config ... --record-profile --out FOLDER on one rank"});
}

std::string content(const std::filesystem::path& file) {
  std::ifstream input(file, std::ios::binary);
  if (!input) refuse(file, std::strerror(errno));
  std::string text{std::istreambuf_iterator<char>(input), {}};
  if (input.bad()) refuse(file, std::strerror(errno));
  return text;
}

// Reads by name; what is missing or of another kind is refused by that name.
class Reader {
 public:
  Reader(const std::filesystem::path& file, const Json& json) : file_(file), json_(json) {}

  template <class Value>
  Value get(const char* name) const {
    if (!json_.contains(name)) refuse(file_, fmt::format("'{}' is missing", name));
    return of<Value>(json_.at(name), name);
  }

  Seconds seconds(const char* name) const { return Seconds(positive(get<double>(name), name)); }
  cost::SecondsPerByte pace(const char* name) const { return cost::SecondsPerByte(positive(get<double>(name), name)); }

  template <class Value>
  Value of(const Json& value, const char* name) const {
    try {
      return value.get<Value>();
    } catch (const Json::exception&) {
      refuse(file_, fmt::format("'{}' is {}", name, value.dump()));
    }
  }

  double positive(double value, const char* name) const {
    if (!std::isfinite(value) || value < 0) refuse(file_, fmt::format("'{}' is {}", name, value));
    return value;
  }

 private:
  const std::filesystem::path& file_;
  const Json& json_;
};

void read_tensors(const std::filesystem::path& file, const Json& tensors, train::Profile& profile) {
  if (!tensors.is_array()) refuse(file, "'tensors' is no list");
  for (const Json& tensor : tensors) {
    const Reader reader(file, tensor);
    profile.workload.tensors.push_back(reader.get<std::string>("name"));
    profile.workload.sizes.push_back(reader.get<Elements>("elements"));
    const auto layer = reader.get<std::size_t>("layer"), layers = profile.workload.layers.size();
    if (layer > (layers == 0 ? 0 : profile.workload.layers.back() + 1)) refuse(file, "its layers are not counted up");
    profile.workload.layers.push_back(layer);
    if (reader.get<bool>("tied")) profile.workload.tied_layer = layer;
    profile.step.ready.push_back(reader.seconds("ready_seconds"));
    if (profile.workload.sizes.back() < 0) refuse(file, "a tensor has fewer than no elements");
  }
}

}  // namespace

std::string profile_json(const train::Profile& profile) {
  const train::Workload& w = profile.workload;
  const cost::StepProfile& s = profile.step;
  Json tensors = Json::array();
  for (std::size_t t = 0; t < w.tensors.size(); ++t) {
    tensors.push_back({{"name", w.tensors[t]},
                       {"elements", w.sizes[t]},
                       {"layer", w.layers[t]},
                       {"tied", w.layers[t] == w.tied_layer},
                       {"ready_seconds", s.ready[t].count()}});
  }
  const Json json{{"model", w.model},
                  {"type", w.type},
                  {"optimizer", w.optimizer},
                  {"batch_per_rank", w.batch_per_rank},
                  {"accumulate", w.accumulate},
                  {"steps", profile.steps},
                  {"backward_begins_seconds", s.backward_begins.count()},
                  {"backward_ends_seconds", s.backward_ends.count()},
                  {"norm_seconds", s.norm.count()},
                  {"optimizer_seconds", s.optimizer.count()},
                  {"check_seconds_per_byte", s.check.value()},
                  {"moving_seconds_per_byte", s.moving.value()},
                  {"adding_seconds_per_byte", s.adding.value()},
                  {"narrowing_seconds_per_byte", s.narrowing.value()},
                  {"choosing_seconds_per_byte", s.choosing.value()},
                  {"spreading_seconds_per_byte", s.spreading.value()},
                  {"pulse_seconds", s.pulse.count()},
                  {"tensors", tensors}};
  return json.dump(2) + "\n";
}

train::Profile read_profile(const std::filesystem::path& file) {
  const Json json = Json::parse(content(file), nullptr, false);
  if (!json.is_object()) refuse(file, "it is not a JSON object");
  const Reader reader(file, json);
  train::Profile profile;
  profile.workload = {reader.get<std::string>("model"),
                      reader.get<std::string>("type"),
                      reader.get<std::string>("optimizer"),
                      reader.get<Elements>("batch_per_rank"),
                      reader.get<Elements>("accumulate"),
                      {},
                      {},
                      {},
                      {}};
  profile.steps = reader.get<long>("steps");
  if (profile.steps < 1) refuse(file, "no step was sampled: it takes more than five");
  cost::StepProfile& step = profile.step;
  step.backward_begins = reader.seconds("backward_begins_seconds");
  step.backward_ends = reader.seconds("backward_ends_seconds");
  step.norm = reader.seconds("norm_seconds"), step.optimizer = reader.seconds("optimizer_seconds");
  step.check = reader.pace("check_seconds_per_byte");
  step.moving = reader.pace("moving_seconds_per_byte"), step.adding = reader.pace("adding_seconds_per_byte");
  step.narrowing = reader.pace("narrowing_seconds_per_byte"), step.choosing = reader.pace("choosing_seconds_per_byte");
  step.spreading = reader.pace("spreading_seconds_per_byte");
  step.pulse = reader.seconds("pulse_seconds");
  read_tensors(file, reader.get<Json>("tensors"), profile);
  return profile;
}

}  // namespace annulet::report
