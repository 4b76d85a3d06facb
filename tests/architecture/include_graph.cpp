#include "architecture/include_graph.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

namespace annulet::test {
namespace {

// The arrows of the design ("may include"); what a layer below may include comes with it. cli includes all.
const std::map<std::string, std::vector<std::string>, std::less<>>& arrows() {
  static const std::map<std::string, std::vector<std::string>, std::less<>> graph{
      {"base", {}},
      {"schedule", {"base"}},
      {"comm", {"base"}},
      {"nn", {"base"}},
      {"data", {"base"}},
      {"cost", {"schedule"}},
      {"collectives", {"schedule", "comm"}},
      {"parallel", {"collectives", "nn", "cost"}},
      {"measure", {"collectives", "cost"}},
      {"train", {"parallel", "data", "measure"}},
      {"plan", {"cost"}},
      {"report", {"plan", "train"}},
      {"cli", {"train", "report"}},
  };
  return graph;
}

bool may_include(std::string_view from, std::string_view to) {
  if (from == to) return true;
  const auto found = arrows().find(from);
  return found != arrows().end() && std::any_of(found->second.begin(), found->second.end(),
                                                [&](const std::string& below) { return may_include(below, to); });
}

bool is_layer(std::string_view name) { return arrows().find(name) != arrows().end(); }

// "cost" for src/cost/price.cpp and include/annulet/cost/price.hpp; empty outside the layers.
std::string layer_of(const std::string& path) {
  static const std::regex place("(?:src|include/annulet)/([a-z_]+)/.*");
  std::smatch match;
  return std::regex_match(path, match, place) ? match[1].str() : std::string();
}

bool may_see_mpi(const std::string& path) {
  return path == "include/annulet/comm/mpi.hpp" || path.rfind("src/comm/", 0) == 0;
}

// Why `path` must not include `name`, or nothing.
std::string objection(const std::string& path, const std::string& name) {
  static const std::regex layered("(?:annulet/)?([a-z_]+)/.*");
  const std::string layer = layer_of(path);
  std::smatch match;
  if (!is_layer(layer)) return "its folder is not a layer";
  if (name.find("..") != std::string::npos) return "includes start from the root";
  if (name == "mpi.h" && !may_see_mpi(path)) return "only include/annulet/comm/mpi.hpp and src/comm include <mpi.h>";
  if (name.rfind("Eigen/", 0) == 0 && path.rfind("src/nn/", 0) != 0) return "Eigen is seen in src/nn only";
  if (!std::regex_match(name, match, layered)) return {};
  const std::string target = match[1];
  if (!is_layer(target)) return name.rfind("annulet/", 0) == 0 ? target + " is not a layer" : std::string();
  return may_include(layer, target) ? std::string() : layer + " may not include " + target;
}

}  // namespace

std::vector<std::string> broken_includes(const SourceFile& file) {
  static const std::regex include("\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"].*");
  std::vector<std::string> broken;
  std::istringstream lines(file.text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (!std::regex_match(line, match, include)) continue;
    const std::string why = objection(file.path, match[1]);
    if (!why.empty()) broken.push_back(file.path + ":" + std::to_string(number) + ": " + match[1].str() + ": " + why);
  }
  return broken;
}

}  // namespace annulet::test
