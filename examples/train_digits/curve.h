// An SVG picture of loss curves, and a progress bar for terminals.
#pragma once
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace digits {

using Curves = std::vector<std::pair<std::string, std::vector<float>>>;

// Rewrites one line of the terminal; prints nothing unless `shown`.
class Progress {
 public:
  Progress(std::string name, int total, bool shown)
      : name_(std::move(name)), total_(total), shown_(shown) {}
  void update(int done, float loss) {
    const int width = 40, filled = width * done / total_;
    if (!shown_ || (done != total_ && filled == filled_)) return;
    filled_ = filled;
    std::fprintf(stderr, "\r%s: [%s%s] %d/%d  loss %.4f%s", name_.c_str(),
                 std::string(filled, '#').c_str(), std::string(width - filled, ' ').c_str(), done,
                 total_, loss, done == total_ ? "\n" : "");
  }

 private:
  std::string name_;
  int total_, filled_ = -1;
  bool shown_;
};

// Means over windows of steps, so that a curve has at most `count` points.
inline std::vector<std::pair<double, double>> smooth(const std::vector<float>& losses,
                                                     size_t count) {
  std::vector<std::pair<double, double>> points;
  const size_t size = std::max<size_t>(1, losses.size() / count);
  for (size_t first = 0; first < losses.size(); first += size) {
    const size_t last = std::min(first + size, losses.size());
    double sum = 0;
    for (size_t i = first; i < last; ++i) sum += losses[i];
    points.emplace_back(static_cast<double>(last), sum / static_cast<double>(last - first));
  }
  return points;
}

inline bool save_picture(const std::string& path, const Curves& curves) {
  const char* colours[] = {"#1f6fb4", "#d1495b"};
  const double width = 720, height = 420, left = 64, right = 20, top = 44, bottom = 52;
  double steps = 1, highest = 0;
  for (const auto& [name, losses] : curves) {
    steps = std::max(steps, static_cast<double>(losses.size()));
    for (auto [step, loss] : smooth(losses, 120)) highest = std::max(highest, loss);
  }
  const auto x = [&](double step) { return left + (width - left - right) * step / steps; };
  const auto y = [&](double loss) {
    return height - bottom - (height - top - bottom) * loss / highest;
  };
  std::ofstream file(path);
  file << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << ' ' << height
       << "\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"" << width
       << "\" height=\"" << height << "\" fill=\"white\"/>\n<text x=\"" << left
       << "\" y=\"24\" font-size=\"16\">Training on handwritten digits, in C++</text>\n";
  for (int i = 0; i <= 4; ++i) {
    const double loss = highest * i / 4, step = steps * i / 4;
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", loss);
    file << "<line x1=\"" << left << "\" x2=\"" << width - right << "\" y1=\"" << y(loss)
         << "\" y2=\"" << y(loss) << "\" stroke=\"#ddd\"/><text x=\"" << left - 8 << "\" y=\""
         << y(loss) + 4 << "\" text-anchor=\"end\">" << text << "</text><text x=\"" << x(step)
         << "\" y=\"" << height - bottom + 20 << "\" text-anchor=\"middle\">" << step
         << "</text>\n";
  }
  for (size_t i = 0; i < curves.size(); ++i) {
    const char* colour = colours[i % 2];
    file << "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" << colour << "\" points=\"";
    for (auto [step, loss] : smooth(curves[i].second, 120))
      file << x(step) << ',' << y(loss) << ' ';
    file << "\"/><text x=\"" << width - right - 8 << "\" y=\"" << top + 18 + 20.0 * i
         << "\" text-anchor=\"end\" fill=\"" << colour << "\">" << curves[i].first << "</text>\n";
  }
  file << "</svg>\n";
  return static_cast<bool>(file);
}

}  // namespace digits
