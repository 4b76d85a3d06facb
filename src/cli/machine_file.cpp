#include "machine_file.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "annulet/base/error.hpp"

namespace annulet::cli {
namespace {

cost::SecondsPerByte pace(const std::string& rate) {
  const ByteRate value = parse_rate(rate);
  if (value.value() <= 0) throw InputError({fmt::format("a bandwidth of '{}' moves nothing", rate)});
  return cost::SecondsPerByte(1 / value.value());
}

}  // namespace

cost::Link read_machine_file(const std::filesystem::path& file) {
  std::string alpha, gap = "0s", bandwidth, reduction;
  CLI::App app;
  app.set_config("--file", file.string(), "", true);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.add_option("--alpha", alpha)->required();
  app.add_option("--gap", gap);
  app.add_option("--bandwidth", bandwidth)->required();
  app.add_option("--reduction", reduction);
  try {
    app.parse(std::vector<std::string>{});
    cost::Link link{parse_seconds(alpha), parse_seconds(gap), pace(bandwidth), cost::SecondsPerByte(0), file.string()};
    if (!reduction.empty()) link.gamma = pace(reduction);
    return link;
  } catch (const std::exception& error) {
    throw InputError({fmt::format("{} is not a machine file: {}", file.string(), error.what()), "",
                      "Write alpha = \"10us\" and bandwidth = \"1.25GB/s\", and gap and reduction if they are known"});
  }
}

}  // namespace annulet::cli
