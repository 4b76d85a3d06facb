#include "annulet/base/config_folder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "annulet/base/error.hpp"

namespace annulet {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> places(std::string_view folder) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<fs::path> places;
  if (!error) places = {program / "configs" / folder, program.parent_path() / "share" / "annulet" / "configs" / folder};
  places.push_back(fs::path("configs") / folder);
  std::erase_if(places, [](const fs::path& place) {
    std::error_code unreadable;
    return !fs::is_directory(place, unreadable);
  });
  return places;
}

}  // namespace

fs::path find_config(std::string_view folder, const std::string& name) {
  std::error_code error;
  if (fs::exists(name, error)) return name;
  const std::string what = fmt::format("there is no file {}", name);
  if (name.find('/') != std::string::npos) throw InputError({what, "", "Name an existing file"});
  for (const fs::path& place : places(folder)) {
    if (fs::path file = place / (name + ".toml"); fs::is_regular_file(file, error)) return file;
  }
  const auto names = config_names(folder);
  if (names.empty()) throw InputError({what, fmt::format("nor a folder configs/{}", folder), "Name an existing file"});
  throw InputError({what, fmt::format("nor is '{}' a name in configs/{}", name, folder),
                    fmt::format("Name a file, or one of {}", fmt::join(names, ", "))});
}

std::vector<std::string> config_names(std::string_view folder) {
  std::vector<std::string> names;
  for (const fs::path& place : places(folder)) {
    for (const auto& entry : fs::directory_iterator(place)) {
      if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
    }
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

}  // namespace annulet
