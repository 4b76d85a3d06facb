#pragma once
// The files that come with the program, found by name: h100 is configs/machines/h100.toml, looked for beside the
// program (as built), in ../share/annulet from there (as installed) and in the working folder.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace annulet {

// `name` as the path of an existing file, else the file of that name in configs/FOLDER. Throws InputError that lists
// the names there are.
std::filesystem::path find_config(std::string_view folder, const std::string& name);

// Names of the files in configs/FOLDER, sorted; empty if it is nowhere.
std::vector<std::string> config_names(std::string_view folder);

}  // namespace annulet
