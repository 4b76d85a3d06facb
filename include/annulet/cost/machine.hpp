#pragma once
// A machine: what predictions need to know of a cluster, kept in a machine file (TOML) that `annulet calibrate` writes
// and every command takes with --machine.
//   source = "..."            where it came from
//   compute = "55GFLOP/s"     what large products reach on one core; optional
//   alpha, bandwidth          one link for all ranks (times; bytes or bits a second); gap, reduction: optional; and
//                             moving: how many bytes a core sends or receives in a second that it spends on nothing
//                             else, looking for messages included; burst with burst_bandwidth: what a card that was
//                             idle lets pass at once, and how fast
//   [inside] and [between]    the same keys for the link inside a node and between nodes, instead of the short form;
//                             and eager_limit with eager_alpha, eager_gap, eager_bandwidth for messages up to that size
//   [device]                  what the planner asks of the device that a rank computes on; all optional: peak_bf16,
//                             peak_fp32, ... (FLOP/s by type), memory, ranks_per_node, and efficiency, the part of the
//                             peak that a model's large products reach
// A section takes keys that it lacks from above the sections; where one of the two is missing, it is as the other.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "annulet/cost/network.hpp"

namespace annulet::cost {

// What a rank computes on; 0: unknown.
struct Device {
  std::map<std::string, FlopRate> peaks{};  // by type: "bf16"
  Bytes memory{0};
  int ranks_per_node = 0;
  double efficiency = 0;
};

struct Machine {
  Link inside, between;
  FlopRate compute{0};  // of one core; 0: unknown
  std::string source{};
  Device device{};

  // `node` as in Network.
  Network network(std::vector<int> node) const { return {inside, between, std::move(node)}; }
};

// Throw InputError naming the file, and the line or key that is missing, unknown or out of range. `name` stands for the
// file in messages, and for `source` where the text has none.
Machine parse_machine(std::string_view text, const std::string& name);
Machine read_machine_file(const std::string& name);  // a file, or one of configs/machines by its name

// What parse_machine reads back to the last digit. `comments`: lines to put first.
std::string to_toml(const Machine& machine, const std::vector<std::string>& comments = {});

}  // namespace annulet::cost
