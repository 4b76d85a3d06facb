#pragma once
// One function per subcommand; each returns the exit code. `arguments` are those after the subcommand's name.
#include <string>
#include <vector>

namespace annulet::cli {

using Arguments = std::vector<std::string>;

int bench(const Arguments& arguments);
int calibrate(const Arguments& arguments);
int train(const Arguments& arguments);
int sample(const Arguments& arguments);
int plan(const Arguments& arguments);
int ring(const Arguments& arguments);
int verify(const Arguments& arguments);

// Whether this is the launcher's first process, as far as its environment says.
bool first_process();

// Prints on the launcher's first process only, so that N ranks say a thing once.
void print_once(const std::string& text);
void print_error_once(const std::string& text);

}  // namespace annulet::cli
