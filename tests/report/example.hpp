#pragma once
// A run of two ranks and two buckets, with round numbers.
#include "annulet/train/records.hpp"

namespace annulet::report::example {

inline train::Summary summary() {
  train::Summary s;
  s.seed = 7, s.ranks = 2, s.driver = "polling", s.algorithm = "ring", s.parameters = 1000, s.steps = 8,
  s.global_batch = 64;
  s.bucket_bytes = Bytes(4096);
  s.train_loss = 0.5;
  s.evaluation = train::Evaluation{0.25, 0.875, 100};
  s.median_step = Seconds(0.010), s.median_forward = Seconds(0.003), s.samples_per_second = 6400;
  s.median_exposed = Seconds(0.001), s.median_skew = Seconds(0.0005), s.hidden_fraction = 0.75;
  s.wire_per_step = s.planned_wire_per_step = Bytes(8000);
  s.wire_by_rank = {Bytes(4000), Bytes(4000)};
  s.control_per_step = Bytes(80);
  s.all_reduce_measured = Seconds(0.004), s.all_reduce_predicted = Seconds(0.005);
  s.flops_per_step = Flops(1e9), s.peak = FlopRate(4e11), s.gemm = FlopRate(3e11), s.mfu = 0.25, s.hfu = 0.25;
  s.exposed = train::ExposedTimes{Seconds(0.0008), Seconds(0.0001), Seconds(0.0002)};
  s.peak_rss = Bytes(1 << 20), s.peak_rss_by_rank = {Bytes(1 << 20), Bytes(1 << 19)};
  s.memory = {{"weights", true, {Bytes(4000), Bytes(4000)}, {Bytes(4000), Bytes(4000)}},
              {"optimiser state", true, {Bytes(2000), Bytes(1000)}, {Bytes(2000), Bytes(1000)}}};
  s.network = cost::Link{Seconds(1e-5), Seconds(0), cost::SecondsPerByte(1e-9), cost::SecondsPerByte(0), "test"};
  s.communication = {{Seconds(0.004), Seconds(0.005), Seconds(0)}};
  return s;
}

inline std::vector<train::BucketRecord> buckets() {
  train::BucketRecord first{6,
                            0,
                            Bytes(1000),
                            Bytes(500),
                            Seconds(0.001),
                            Seconds(0.001),
                            Seconds(0.003),
                            Seconds(0.002),
                            Seconds(0.001),
                            Seconds(0.0004),
                            Seconds(0.0016)};
  train::BucketRecord second = first;
  second.bucket = 1, second.bytes = Bytes(3000), second.wire = Bytes(1500);
  return {first, second};
}

inline std::vector<train::StepRecord> steps() {
  train::StepRecord record;
  record.step = 3, record.loss = 0.5, record.learning_rate = 0.1, record.gradient_norm = 2, record.samples = 64;
  record.seconds.data = Seconds(0.0001), record.seconds.forward = Seconds(0.002);
  record.seconds.backward = Seconds(0.004), record.seconds.exposed = Seconds(0.001);
  record.seconds.optimizer = Seconds(0.0005), record.seconds.total = Seconds(0.0077);
  record.payload = Bytes(4000), record.wire = Bytes(4000);
  return {record};
}

}  // namespace annulet::report::example
