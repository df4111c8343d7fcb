// The sampler's definition in docs/arithmetic.md, sentence by sentence, with the library's expf and ln and nothing else of it. Not thread-safe.
#ifndef PROOFINFER_TESTS_SUPPORT_PLAIN_SAMPLER_H
#define PROOFINFER_TESTS_SUPPORT_PLAIN_SAMPLER_H

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/logarithm.h"
#include "proved/elementary.h"

namespace proofinfer_test {

struct PlainSampler {
  float temperature = 0, top_p = 0.9f, typical_p = 0, min_p = 0;
  size_t top_k = 0;
  float repetition = 1, frequency = 0, presence = 0;
  size_t window_size = 64;
  uint64_t state = 1;
  std::deque<int32_t> window = {};
  std::map<int32_t, float> biases = {};
  std::set<int32_t> banned = {}, allowed = {};
  bool masked = false;

  struct Candidate {
    int32_t id;
    float value;  // a logit, later a probability
  };
  using Candidates = std::vector<Candidate>;

  void accept(int32_t token) {
    window.push_back(token);
    if (window.size() > window_size) window.pop_front();
  }

  float coin() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return float(uint32_t((state * 0x2545F4914F6CDD1Du) >> 32) >> 8) / 16777216.0f;
  }

  static float held(float x) { return std::isinf(x) ? std::copysign(FLT_MAX, x) : x; }
  static bool is_off(float share) { return !(share > 0 && share < 1); }
  static bool is_larger(const Candidate &a, const Candidate &b) { return a.value > b.value; }
  static float sum(const Candidates &c) {
    float total = 0;
    for (const Candidate &x : c) total += x.value;
    return total;
  }
  static void softmax(Candidates *c) {
    float largest = std::min_element(c->begin(), c->end(), is_larger)->value;
    for (Candidate &x : *c) x.value = pi_expf(x.value - largest);
    float total = sum(*c);
    for (Candidate &x : *c) x.value /= total;
  }
  static void to_id_order(Candidates *c) {
    std::sort(c->begin(), c->end(), [](const Candidate &a, const Candidate &b) { return a.id < b.id; });
  }
  // Up to and with the one at which the sum first exceeds the share.
  static void cut(Candidates *c, float share) {
    float total = 0;
    for (size_t i = 0; i < c->size(); i++) {
      total += (*c)[i].value;
      if (total > share) return c->resize(i + 1);
    }
  }
  static int32_t walk(const Candidates &c, float limit) {
    float cumulative = 0;
    for (const Candidate &x : c)
      if (limit < (cumulative += x.value)) return x.id;
    return c.back().id;
  }

  std::vector<float> adjusted(std::vector<float> x) const {
    for (int32_t id : std::set<int32_t>(window.begin(), window.end())) {
      float &y = x[size_t(id)];
      float count = float(std::count(window.begin(), window.end(), id));
      y = y > 0 ? y / repetition : y * repetition;
      y = y - count * frequency;
      y = held(y - presence);
    }
    for (auto [id, bias] : biases) x[size_t(id)] = held(x[size_t(id)] + bias);
    return x;
  }

  void keep_top_k(Candidates *c) const {
    if (top_k == 0 || top_k >= c->size()) return;
    std::stable_sort(c->begin(), c->end(), is_larger);
    c->resize(top_k);
    to_id_order(c);
  }

  void keep_typical(Candidates *c, const Candidates &divided) const {
    float largest = std::min_element(divided.begin(), divided.end(), is_larger)->value, total = 0;
    for (const Candidate &x : divided) total += pi_expf(x.value - largest);
    float entropy = 0;
    std::map<int32_t, float> log_p, distance;
    for (size_t i = 0; i < c->size(); i++) {
      log_p[(*c)[i].id] = (divided[i].value - largest) - pi_logf(total);
      if ((*c)[i].value > 0) entropy -= (*c)[i].value * log_p[(*c)[i].id];
    }
    c->erase(std::remove_if(c->begin(), c->end(), [](const Candidate &x) { return x.value == 0; }), c->end());
    for (const Candidate &x : *c) distance[x.id] = std::fabs(log_p[x.id] + entropy);
    std::stable_sort(c->begin(), c->end(), [&](const Candidate &a, const Candidate &b) { return distance[a.id] < distance[b.id]; });
    cut(c, typical_p);
    to_id_order(c);
    float kept = sum(*c);
    for (Candidate &x : *c) x.value /= kept;
  }

  void drop_below_share(Candidates *c) const {
    float least = min_p * std::min_element(c->begin(), c->end(), is_larger)->value;
    c->erase(std::remove_if(c->begin(), c->end(), [&](const Candidate &x) { return x.value < least; }), c->end());
  }

  int32_t draw(Candidates c) {
    keep_top_k(&c);
    int32_t likeliest = std::min_element(c.begin(), c.end(), is_larger)->id;
    Candidates divided = c;
    for (Candidate &x : divided) x.value /= temperature;
    float drawn = coin();
    if (std::isinf(std::min_element(divided.begin(), divided.end(), is_larger)->value)) return likeliest;
    c = divided;
    softmax(&c);
    if (!is_off(typical_p)) keep_typical(&c, divided);
    if (is_off(top_p) && min_p == 0) return walk(c, drawn);
    if (!is_off(top_p)) {
      int32_t first = c[0].id;
      float cutoff = (1.0f - top_p) / float(c.size() - 1);
      c.erase(std::remove_if(c.begin(), c.end(), [&](const Candidate &x) { return !(x.value >= cutoff); }), c.end());
      if (c.empty()) return first;
      std::stable_sort(c.begin(), c.end(), is_larger);
      cut(&c, top_p);
    }
    if (min_p > 0) drop_below_share(&c);
    return walk(c, drawn * sum(c));
  }

  // -1: nothing is allowed.
  int32_t sample(const std::vector<float> &logits) {
    std::vector<float> x = adjusted(logits);
    Candidates c;
    for (int32_t id = 0; size_t(id) < x.size(); id++)
      if ((!masked || allowed.count(id)) && !banned.count(id)) c.push_back({id, x[size_t(id)]});
    if (c.empty()) return -1;
    int32_t id = temperature == 0 ? std::min_element(c.begin(), c.end(), is_larger)->id : draw(c);
    accept(id);
    return id;
  }
};

}  // namespace proofinfer_test

#endif
