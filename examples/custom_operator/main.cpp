// Calls the operator from C++, by its name.
#include <cstdio>

#include <lamella/lamella.h>

int main() {
  auto midpoint =
      lamella::Dispatcher::singleton()
          .findSchemaOrThrow("custom_operator::midpoint", "")
          .typed<lamella::Tensor(const lamella::Tensor&, const lamella::Tensor&, double)>();
  lamella::Tensor a = lamella::empty({2}), b = lamella::empty({2});
  a.data_ptr<float>()[0] = 0, b.data_ptr<float>()[0] = 10;
  a.data_ptr<float>()[1] = 4, b.data_ptr<float>()[1] = 8;
  lamella::Tensor c = midpoint.call(a, b, 0.25);
  std::printf("%g %g\n", c.data_ptr<float>()[0], c.data_ptr<float>()[1]);
  return c.data_ptr<float>()[0] == 2.5f && c.data_ptr<float>()[1] == 5 ? 0 : 1;
}
